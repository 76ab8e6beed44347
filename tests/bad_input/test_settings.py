"""Settings that cannot be: in a file, in the environment, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.schemas.settings import Settings
from tests.bad_input.broken_documents import ANY_LANGUAGE, TOML, broken, not_a_file
from tests.bad_input.harness import Row, check_row, each_row
from tests.bad_input.wrong_numbers import WRONG_NUMBERS, number_keys

FILE = "perfbisect.toml"
LIST = ["list"]

OUTSIDE = {
    "jobs": ("0", "4097"),
    "alpha": ("1e-7", "0.5"),
    "cache_gib": ("0", "1048577"),
    "health_pause_hours": ("0", "1e7"),
    "mail.port": ("0", "65536"),
    "mail.daily_limit": ("0", "1001"),
}
"""Number of the settings -> one below and one above its range."""

WRONG = {
    "an unknown key": ('recip = "x"', [":1: unknown key 'recip'; did you mean 'recipe'?"]),
    "an unknown table": ("[jobs]\nn = 1", [":1: key 'jobs': must be a whole number"]),
    "a key of 10,000 characters": ("k" * 10_000 + " = 1", [":1: "]),
    "an empty repository": ('repo = ""', [":1: key 'repo': must be the path"]),
    "a repository of numbers": ("repo = 3", [":1: key 'repo': must be a path"]),
    "a lab that is a list": ('lab = ["a"]', [":1: key 'lab': must be a path"]),
    "a state folder of nobody": ('state_dir = "~no-such-user/x"', ["there is no such user's home"]),
    "an empty workload": ('workload = ""', [":1: key 'workload': must not be empty"]),
    "a recipe with a line break": ('recipe = "a\\nb"', [":1: key 'recipe': must be text of one line"]),
    "a mirror without a scheme": ('toolchain_mirror = "example.org"', [":1: key 'toolchain_mirror'"]),
    "a mirror over FTP": ('toolchain_mirror = "ftp://example.org"', ["an address: https://"]),
    "a mirror of a folder here": ('toolchain_mirror = "file://x"', ["an address: https://"]),
    "artefacts in a folder of this folder": (
        'artefacts = "shared"',
        [":1: key 'artefacts': must be a folder"],
    ),
    "artefacts on another server": ('artefacts = "ftp://example.org"', ["or an address: https://"]),
    "caps that are no table": ("caps = 3", [":1: key 'caps': must be a mapping"]),
    "a cap of nothing": ("[caps]\nnightly = 0", [":2: key 'caps.nightly': must be above 0"]),
    "a cap that is not a number": ('[caps]\n"a b" = nan', [":2: key 'caps.a b': nan is no finite number"]),
    "a cap of text": ('caps = {a = "many"}', [":1: key 'caps.a': must be a number"]),
    "a cap past all": ("caps = {a = 1e309}", [":1: key 'caps.a': inf is no finite number"]),
    "a cap of nobody": ('caps = {"" = 3}', [":1: ", "a key must not be empty"]),
    "artefacts of two lines": ('artefacts = "/srv\\n/x"', [":1: key 'artefacts'"]),
}

VARIABLES = {
    "PERFBISECT_JOBS": ["0", "-1", "4097", "many", "nan", "1.5", "9" * 5000, "1e3"],
    "PERFBISECT_ALPHA": ["0", "0.5", "1e-320", "nan", "inf", "-1", "5%", "1e309", "9" * 5000],
    "PERFBISECT_TOOLCHAIN_MIRROR": ["x", "https://"],
    "PERFBISECT_LAB": ["~no-such-user/lab.yml"],
    "PERFBISECT_CAPS": ["nightly", "=3", "a=0", "a=nan", "a=1e309", "a=1,b"],
    "PERFBISECT_RECIPE": ["a\nb"],
    "PERFBISECT_ARTEFACTS": ["srv", "https://", "~/x"],
    "PERFBISECT_CACHE_GIB": ["0", "-1", "1.5", "nan", "1e3"],
}
"""Variable -> values that it cannot have."""

ROWS = [
    *broken("settings", FILE, LIST, ANY_LANGUAGE, TOML),
    *(Row(name, LIST, [FILE, *words], {FILE: f"{text}\n"}) for name, (text, words) in WRONG.items()),
    *(
        Row(f"{key}: {name}", LIST, [f"{FILE}:1: key '{key}"], {FILE: f"{key} = {value}\n"})
        for key, (below, above) in OUTSIDE.items()
        for name, value in {"below": below, "above": above, **WRONG_NUMBERS["toml"]}.items()
    ),
    *(
        Row(
            f"{variable}={value[:20]!r}",
            LIST,
            [] if "~" in value else [variable],
            environment={variable: value},
        )
        for variable, values in VARIABLES.items()
        for value in values
    ),
    Row("a misspelt variable", LIST, ["PERFBISECT_JOB'"], environment={"PERFBISECT_JOB": "1"}),
    *not_a_file("settings", FILE, LIST),
    Row("--config of nothing", ["--config", "absent.toml", "list"], ["--config absent.toml: no such file"]),
    Row("--config of a folder", ["--config", "linux", "list"], ["linux: is a folder"]),
    Row("--config of 4,000 characters", ["--config", "x" * 4000, "list"], ["File name too long"]),
    Row("--config of a device", ["--config", "/dev/zero", "list"], ["is not a regular file"]),
]


@each_row(ROWS)
def test_settings_are_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)


def test_every_number_of_the_settings_has_its_rows() -> None:
    assert number_keys(Settings) == {*OUTSIDE, "caps"}
