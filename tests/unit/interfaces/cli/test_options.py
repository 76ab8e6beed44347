"""The options of `start` and `plan`: one for each field of a request, whatever its type."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_args

import pytest

from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.interfaces.cli import options
from bisector.schemas.request import Request, option_name
from tests.support.small_git import SmallGit

got: list[tuple[Wiring, Request, bool]] = []


@options.takes_request
def command(wiring: Wiring, request: Request, extra: options.Json = False) -> None:
    """A command of its own option."""
    got.append((wiring, request, extra))


@pytest.fixture(autouse=True)
def _here(own_folders: Path) -> None:
    got.clear()


def call(**said: object) -> Request:
    parameters = inspect.signature(command).parameters
    command(**{name: said.get(name, parameter.default) for name, parameter in parameters.items()})
    return got[-1][1]


def test_every_field_has_its_option_in_the_order_of_the_model() -> None:
    parameters = list(inspect.signature(command).parameters)
    others = ("old", "new", "lab", "extra")
    assert [name for name in parameters if name not in others] == list(Request.model_fields)
    assert parameters[:4] == ["good", "bad", "old", "new"]
    assert parameters.index("lab") == parameters.index("testbeds") + 1
    assert parameters[-1] == "extra"


def test_help_and_names_are_those_of_the_model() -> None:
    for name, parameter in inspect.signature(command).parameters.items():
        if name in Request.model_fields and name != "paths":
            info = get_args(parameter.annotation)[1]
            assert info.help.startswith(Request.model_fields[name].description)
            assert info.help.endswith("]") or info.parser is None, "a number shows its range"
            assert info.default == option_name(name), "Typer keeps the first name there"


def test_what_is_said_becomes_the_request(tmp_path: Path) -> None:
    patch = tmp_path / "one.patch"
    patch.write_text("x")
    request = call(
        good="v1",
        bad="v2",
        workload="pipe-test",
        param=["threads=2", "threads=4", "mode=fast"],
        testbeds=["a", "b"],
        apply=[patch],
        max_hours=2.5,
        scan=True,
        build_ahead=3,
        paths=["mm"],
        extra=True,
    )
    assert request.param == {"threads": ("2", "4"), "mode": ("fast",)}
    assert (request.testbeds, request.apply, request.paths) == (("a", "b"), (str(patch),), ("mm",))
    assert (request.max_hours, request.scan, request.build_ahead) == (2.5, True, 3)
    assert (request.alpha, request.recipe) == (0.05, "auto"), "the settings' own"
    assert got[-1][2] is True
    assert request.repo == str(Path.cwd())


def test_paths_start_where_the_user_stands_in_the_tree_but_not_at_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-- .` in a subfolder searched the whole tree."""
    tree = SmallGit(tmp_path / "linux").make("a").path
    monkeypatch.chdir(tree / "kernel")
    assert call(good="v1", bad="v2", workload="pipe-test", paths=["."]).paths == ("kernel",)
    monkeypatch.setenv("PERFBISECT_SERVER", "https://perf.example")
    assert call(good="v1", bad="v2", workload="pipe-test", paths=["mm"]).paths == ("mm",)


def test_the_settings_give_what_is_not_said(own_folders: Path) -> None:
    Path("perfbisect.toml").write_text('alpha = 0.01\nrecipe = "x86_64-old"\nworkload = "pipe-test"\n')
    request = call(good="v1", bad="v2")
    assert (request.alpha, request.recipe, request.workload) == (0.01, "x86_64-old", "pipe-test")
    assert call(good="v1", bad="v2", alpha=0.2, recipe="r", workload="w").alpha == 0.2


def test_a_command_takes_the_place_of_the_settings_workload(own_folders: Path) -> None:
    Path("perfbisect.toml").write_text('workload = "pipe-test"\n')
    request = call(good="v1", bad="v2", run="dd")
    assert (request.workload, request.run) == ("", "dd")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"good": "v1", "bad": "v2", "workload": "w", "run": "x"}, "--run and --workload exclude"),
        ({"good": "v1", "bad": "v2", "run": " "}, "--run is empty"),
        ({}, "--good is missing"),
        ({"good": "v1"}, "--bad is missing"),
        ({"good": "v1", "bad": "v2"}, "--workload is missing"),
        ({"good": "v1", "bad": "v2", "workload": "w", "param": ["x"]}, "'x' is no NAME=VALUE"),
        ({"good": "v1", "bad": "v2", "workload": "w", "alpha": 0.7}, "--alpha: "),
        ({"good": "v1", "bad": "v2", "workload": "w", "max_builds": 0}, "--max-builds: "),
        ({"good": "v1", "bad": "v2", "workload": "w", "apply": ["none.patch"]}, "no such file"),
        ({"good": "v1", "bad": "v2", "workload": "w", "apply": ["/dev/zero"]}, "zero: is not a regular file"),
        ({"good": "v1", "bad": "v2", "workload": "w", "apply": ["/"]}, "--apply /: is a folder"),
    ],
)
def test_what_is_missing_or_wrong_is_refused(said: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        call(**said)
