"""Whatever a file holds, its reader gives a value or its own error: any bytes, any tree of values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bisector.adapters.ansible import inventory
from bisector.adapters.parsers.results import result_format
from bisector.errors import RequestError
from bisector.schemas.commit_priors import read_priors
from bisector.schemas.documents.json_reader import parse_json, read_own_json
from bisector.schemas.documents.toml_reader import parse_toml
from bisector.schemas.documents.yaml_reader import parse_yaml
from bisector.schemas.kernel.build_plan import Tables
from bisector.schemas.kernel.recipe import load_recipe
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import load_settings
from bisector.schemas.workload.manifest import WorkloadManifest
from bisector.schemas.workload.workload import load_workload
from bisector.simulation.scenario import read_samples

SHORT = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""The same examples in every run: what fails once fails until it is mended."""

LANGUAGES = {
    "yaml": ":#-?[]{}&*!|>%@`'\"\\\t\n 0xa.",
    "toml": "[]{}=.\"'\\#\n 0a_-:",
    "json": '{}[]",:\\ \n0eE-+.nul',
}
"""Language -> the characters that mean something in it."""

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1e309", "0-3", "5%", "{a}", "../x", "v5.4", 10**400, -1, "x" * 500])
)
KEYS = st.sampled_from(
    [*WorkloadManifest.model_fields, "a", "perf-stat", "events", "unit", "better"]
) | st.text(max_size=4)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


def answered(read: Callable[[], object]) -> None:
    """Assert that a reader gives a value, or a wrong request with all that users need."""
    try:
        read()
    except RequestError as error:
        assert error.cure and len(error.message) < 2000, error.message
        assert "validation error" not in error.message and "Input should" not in error.message


@pytest.mark.parametrize("language", LANGUAGES)
@SHORT
@given(data=st.data())
def test_any_text(language: str, data: st.DataObject) -> None:
    text = data.draw(st.text(LANGUAGES[language], max_size=60) | st.text(max_size=30))
    parse = {"yaml": parse_yaml, "toml": parse_toml, "json": parse_json}[language]
    answered(lambda: parse(text, "f"))


@pytest.fixture
def readers(tmp_path: Path) -> dict[str, tuple[Path, Callable[[], object]]]:
    """Return name -> (file, how it is read): all files that users write or give."""
    (tmp_path / "kernels" / "recipes").mkdir(parents=True)
    (tmp_path / "own.json").write_text("{}")
    kernels = tmp_path / "kernels"
    return {
        "manifest": (tmp_path / "workload.yaml", lambda: load_workload(str(tmp_path))),
        "settings": (
            tmp_path / "perfbisect.toml",
            lambda: load_settings(tmp_path / "perfbisect.toml", environment={}),
        ),
        "toolchains": (kernels / "toolchains.toml", lambda: Tables.load(kernels)),
        "fixups": (kernels / "fixups.toml", lambda: Tables.load(kernels)),
        "options": (kernels / "options.toml", lambda: Tables.load(kernels)),
        "priors": (
            tmp_path / "priors.toml",
            lambda: read_priors(tmp_path / "priors.toml", ["a1" * 20], lambda paths: ()),
        ),
        "recipe": (kernels / "recipes" / "x.toml", lambda: load_recipe("x", kernels)),
        "samples": (tmp_path / "samples.json", lambda: read_samples(tmp_path / "samples.json")),
        "results": (tmp_path / "results.json", lambda: result_format.read(str(tmp_path / "results.json"))),
        "own": (tmp_path / "own.json", lambda: read_own_json(tmp_path / "own.json")),
        "inventory": (
            tmp_path / "lab.yml",
            lambda: inventory._check_syntax(tmp_path / "lab.yml", program=False),
        ),
    }


NAMES = (
    "manifest",
    "settings",
    "toolchains",
    "fixups",
    "options",
    "priors",
    "recipe",
    "samples",
    "results",
    "own",
    "inventory",
)


@pytest.mark.parametrize("name", NAMES)
@SHORT
@given(content=st.binary(max_size=60) | st.text("[]{}=:\"'\n a1-", max_size=40).map(str.encode))
@example(content=b"\xef\xbb\xbf")
@example(content=b"[" * 5000)
@example(content=b"a = " + b"[" * 5000)
@example(content=b'{"a":' * 5000)
@example(content=b"\x7fELF")
@example(content=b"\x7fELF\x02\x01" + b"\xff" * 60)
def test_any_bytes(readers: dict[str, tuple[Path, Callable[[], object]]], name: str, content: bytes) -> None:
    file, read = readers[name]
    file.write_bytes(content)
    answered(read)


@pytest.mark.parametrize("name", ["manifest", "samples", "results", "inventory"])
@SHORT
@given(tree=TREES)
def test_any_tree(readers: dict[str, tuple[Path, Callable[[], object]]], name: str, tree: object) -> None:
    file, read = readers[name]
    as_yaml = file.suffix in (".yaml", ".yml")
    file.write_text(yaml.safe_dump(tree) if as_yaml else json.dumps(tree), errors="surrogatepass")
    answered(read)


MANIFEST: dict[str, Any] = {
    "name": "mine",
    "description": "x",
    "run": ["sleep"],
    "requires": {"packages": ["coreutils"]},
    "metrics": [{"name": "real", "unit": "s", "better": "lower", "threshold": "5%", "decides": True}],
}


@SHORT
@given(key=st.sampled_from([*WorkloadManifest.model_fields]), tree=TREES)
def test_any_value_of_a_key_of_a_manifest(
    readers: dict[str, tuple[Path, Callable[[], object]]], key: str, tree: object
) -> None:
    file, read = readers["manifest"]
    file.write_text(yaml.safe_dump(MANIFEST | {key: tree}), errors="surrogatepass")
    answered(read)


@SHORT
@given(
    variables=st.dictionaries(KEYS.map(lambda key: f"perfbisect_{key}") | KEYS, TREES, max_size=4),
    host=st.text(),
)
def test_any_variables_of_a_host(variables: dict[str, object], host: str) -> None:
    data = {"_meta": {"hostvars": {host: variables}}, "testbeds": {"hosts": [host]}}
    answered(lambda: lab_from_inventory(data, Path("lab.yml")))
