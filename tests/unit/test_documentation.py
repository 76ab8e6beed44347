"""The pages for contributors are true: paths, modules, make targets and layers that they name exist."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))),
    *(
        "README.md",
        "CONTRIBUTING.md",
        "tests/README.md",
        "tests/bench/README.md",
    ),
    *("kernels/README.md", "workloads/README.md", "playbooks/README.md", "SECURITY.md"),
)
TOP = {path.name for path in ROOT.iterdir()}
FILE = re.compile(r"^[\w./-]+\.(?:py|md|toml|c|yml|yaml)$")


def _named_paths(page: str) -> list[str]:
    """Return the paths that a page names in backticks or in a diagram, without those that have a NAME."""
    text = (ROOT / page).read_text(encoding="utf-8")
    diagrams = "\n".join(re.findall(r"^```\w*\n(.*?)^```$", text, re.M | re.S))
    words = re.findall(r"`([^`\n]+)`", text) + re.findall(r"[\w/]+/\w+\.py", diagrams)
    paths = [word for word in words if "/" in word and (FILE.match(word) or word.split("/")[0] in TOP)]
    return [path for path in paths if "NAME" not in path and " " not in path]


def _exists(page: str, path: str) -> bool:
    """Return whether it exists from the top, beside the page, or in the package (as diagrams say it)."""
    return any((folder / path).exists() for folder in (ROOT, (ROOT / page).parent, ROOT / "bisector"))


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page: str) -> None:
    assert [path for path in _named_paths(page) if not _exists(page, path)] == []


def test_paths_are_found() -> None:
    assert sum(len(_named_paths(page)) for page in PAGES) > 100


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?://)([^)#]+)", text)
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def _linked(pages: Iterable[Path]) -> set[Path]:
    return {
        page.parent.joinpath(link).resolve()
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    }


def test_every_page_of_docs_is_linked_and_every_picture_shown() -> None:
    first, docs = (ROOT / "README.md", ROOT / "docs" / "README.md"), ROOT / "docs"
    pages = {path.resolve() for path in docs.rglob("*.md")}
    assert pages - {first[1]} <= _linked(first)
    assert {path.resolve() for path in (docs / "images").glob("*.svg")} <= _linked((*first, *pages))


def test_no_page_has_the_marks_of_a_merge() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")]
    marked = [
        path for path in pages if re.search(r"(?m)^(<{7}|>{7}|={7}$)", path.read_text(encoding="utf-8"))
    ]
    assert len(pages) > 30
    assert marked == []


def test_paths_in_docstrings_and_comments_exist() -> None:
    """They are written from the package's folder, or from the top: 'adapters/agent/session'."""
    folder = "adapters|app|engine|interfaces|linux|model|report|schemas|search|simulation|stats|testing"
    path = re.compile(rf"(?<![\w/.-])(?:{folder})(?:/[a-z_]+)+(?![\w/])")
    files = [*(ROOT / "bisector").rglob("*.py"), *(ROOT / "playbooks").rglob("*.yml")]
    named = [(file, found) for file in files for found in path.findall(file.read_text(encoding="utf-8"))]
    assert named
    gone = [
        f"{file.relative_to(ROOT)}: {found}"
        for file, found in named
        if not (ROOT / "bisector" / found).exists() and not (ROOT / "bisector" / f"{found}.py").exists()
    ]
    assert gone == []


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set(re.findall(r"(?:^    |`)make ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8"), re.M))
    assert named <= targets


def test_benchmarks_are_modules() -> None:
    text = (ROOT / "tests/bench/README.md").read_text(encoding="utf-8")
    modules = re.findall(r"python -m ([\w.]+)", text)
    found = (ROOT / "tests/bench").glob("*.py")
    files = {path.stem for path in found if "__main__" in path.read_text(encoding="utf-8")}
    assert {module.removeprefix("tests.bench.") for module in modules} >= files
    assert [module for module in modules if not (ROOT / f"{module.replace('.', '/')}.py").exists()] == []


def test_layers_are_those_of_the_import_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c.get("containers") == ["bisector"])
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```layers\n(.*?)^```$", text, re.M | re.S)
    assert [re.split(r"\s{2,}", line)[0] for line in block.splitlines()] == layers


def test_pre_commit_runs_what_make_check_runs() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0][
        "hooks"
    ]
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert recipe is not None
    lines = [line.strip("\t@").replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    assert [hook["entry"] for hook in hooks] == lines
    assert not any(hook["pass_filenames"] for hook in hooks)


def test_words_of_the_code_exist() -> None:
    """What CONTRIBUTING.md names inside files is there."""
    for file, word in (
        ("bisector/ports.py", "class Testbed"),
        ("bisector/schemas/machine/testbed_variables.py", "TestbedKind = "),
        ("bisector/app/wiring.py", "def testbed"),
        ("bisector/interfaces/cli/application.py", "_COMMANDS"),
        ("bisector/interfaces/cli/comparisons/compare.py", "Format = "),
        ("bisector/interfaces/cli/query.py", "def report"),
        ("bisector/report/text.py", "def render(material"),
        ("bisector/report/comparison/table.py", "def render(table"),
    ):
        assert word in (ROOT / file).read_text(encoding="utf-8"), f"{word} in {file}"
