"""The tool of `make mutants`: what is mutated, what is drawn, which tests try it, what is kept."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from cosmic_ray import plugins
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

from tests.mutation import operators, run
from tests.mutation.draw import Mutant, draw, equivalent_mutants, is_equivalent, mutants, places

ROOT = Path(__file__).resolve().parents[2]


def mutants_of(source: str, root: Path, operator: str = "") -> list[Mutant]:
    """Return all mutants of a module with this text, of one operator or of all."""
    (root / "module.py").write_text(source, encoding="utf-8")
    found = places([Path("module.py")], root, ())
    specs = [spec for place in found for spec in place.alternatives if spec.operator_name.endswith(operator)]
    return list(mutants(specs, root))


TRY = "try: pass\n"


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("SwapFunction", "x = any(y)", ["x = all(y)"]),
        ("SwapFunction", "x = y.min()", ["x = y.max()"]),
        ("SwapFunction", "def min(): return f(key=max)", ["def min(): return f(key=min)"]),
        ("RemoveArgument", "f(1, a=2)", ["f(1)"]),
        ("RemoveArgument", "f(a=1, b=2)", ["f( b=2)", "f(a=1)"]),
        ("RemoveSlice", "x = y[:1]", ["x = y[:]"]),
        ("RemoveCall", "f(x)\ny = f(x)", ["pass"]),
        ("RemoveReturn", "def f():\n    return\n", ["pass"]),
        ("ReplaceException", f"{TRY}except A as e: pass", ["except StopAsyncIteration as e: pass"]),
        ("ReplaceException", f"{TRY}except (a.B): pass", ["except (StopAsyncIteration): pass"]),
        (
            "ReplaceException",
            f"{TRY}except (A, b.C): pass",
            ["except (StopAsyncIteration, b.C): pass", "except (A, StopAsyncIteration): pass"],
        ),
        ("ReplaceException", f"{TRY}except: pass", []),
    ],
)
def test_an_operator_changes(operator: str, before: str, after: list[str], tmp_path: Path) -> None:
    assert [mutant.added for mutant in mutants_of(before, tmp_path, operator)] == after


SILENT = '''
"""Text of 1 module."""

from dataclasses import dataclass

if TYPE_CHECKING:
    LIMIT = 1 + 1


@dataclass(frozen=True)
class Kept:
    """Text of 2 lines."""

    field: int | None


def function(argument: int | str) -> int | None:
    log.warning("%d", 3)
    raise Refused(f"{1 + 1} of 2", 4)
'''


def test_text_and_types_are_left_alone(tmp_path: Path) -> None:
    assert [mutant.diff for mutant in mutants_of(SILENT, tmp_path)] == []


def test_code_between_text_is_mutated(tmp_path: Path) -> None:
    found = mutants_of(SILENT + "    return argument > 3  # Ä\n", tmp_path)
    assert {mutant.removed for mutant in found} == {"return argument > 3 # Ä"}
    assert {mutant.added for mutant in found} >= {"return argument >= 3 # Ä", "return argument > 4 # Ä"}


def test_a_draw_is_seeded_and_spread_over_files_and_kinds(tmp_path: Path) -> None:
    for name, lines in (("small.py", 20), ("large.py", 80)):
        text = "".join(f"x{number} = y and z\na{number} = b < c\n" for number in range(lines))
        (tmp_path / name).write_text(text, encoding="utf-8")
    population = list(places([Path("small.py"), Path("large.py")], tmp_path, ()))
    drawn = draw(population, 50, seed=1)
    counts = Counter((str(spec.module_path), spec.operator_name.split("_")[0]) for spec in drawn)
    assert counts == {
        ("large.py", "core/ReplaceAndWithOr"): 20,
        ("large.py", "core/ReplaceComparisonOperator"): 20,
        ("small.py", "core/ReplaceAndWithOr"): 5,
        ("small.py", "core/ReplaceComparisonOperator"): 5,
    }
    assert draw(population, 50, seed=1) == drawn
    assert draw(population, 50, seed=2) != drawn
    assert len(draw(population, 1000, seed=1)) == len(population)


def test_an_equivalent_mutant_is_known_by_its_text_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "tests/mutation").mkdir(parents=True)
    entry = (
        '[[equivalent]]\nfile = "module.py"\nold = "x = a < b"\nnew = "x = a <= b"\nreason = "they differ"\n'
    )
    (tmp_path / "tests/mutation/equivalent.toml").write_text(entry, encoding="utf-8")
    listed = equivalent_mutants(tmp_path)
    found = mutants_of("\n\n\nif c:\n    x = a < b\n", tmp_path, "ReplaceComparisonOperator_Lt_LtE")
    others = mutants_of("x = a < b\n", tmp_path, "ReplaceComparisonOperator_Lt_Gt")
    assert [is_equivalent(mutant, listed) for mutant in [*found, *others]] == [True, False]


def test_what_is_listed_as_equivalent_is_still_there() -> None:
    texts = {file: " ".join((ROOT / file).read_text().split()) for file, _, _ in equivalent_mutants(ROOT)}
    assert [(file, old) for file, old, _ in equivalent_mutants(ROOT) if old not in texts[file]] == []


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        ("bisector/search/cache.py", ["tests/unit/search/test_cache.py", "tests/unit/search"]),
        (
            "bisector/engine/monitor_runs.py",
            ["tests/unit/engine/test_monitor_runs.py", "tests/unit/engine", "tests/contract"],
        ),
        ("bisector/ports.py", ["tests/contract/test_testbed_contract.py"]),
    ],
)
def test_tests_come_in_stages(module: str, stages: list[str]) -> None:
    selection = run.Selection(ROOT, {"bisector/engine": ["tests/contract"]}, ["tests/unit/a.py::slow"])
    first, *others = stages
    assert selection.stages(module) == [
        first,
        *(f"{stage} --deselect=tests/unit/a.py::slow" for stage in others),
    ]


PYPROJECT = """
[tool.mutants]
exclude-operators = ["core/ReplaceComparisonOperator_Gt_(?!GtE)", "core/(Number|ReplaceBinary)"]
own-only = []
then = {}
"""
MODULE = "def is_large(x):\n    return x > 3 and x % 2\n"
TEST = "from bisector.part import is_large\n\ndef test_it():\n    assert is_large(5) and not is_large(6)\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with one module and one test, which does not try the limits."""
    files = {
        "pyproject.toml": PYPROJECT,
        "bisector/__init__.py": "",
        "bisector/part.py": MODULE,
        "tests/unit/test_part.py": TEST,
        "tests/covered_elsewhere.toml": "[covered]\n",
        "tests/mutation/equivalent.toml": "",
        ".gitignore": "/.mutants/\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def test_survivors_are_shown_and_tested_again(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two mutants: `or` for `and`, and `>=` for `>`, which the test does not see."""
    run.run(checkout, ["bisector"], 10, 1)
    said = capsys.readouterr().out
    assert "1 of 2 killed (0 by the time limit): 50.0%, 95% interval 9.5% to 90.5%" in said
    assert "survived: bisector/part.py:2 core/ReplaceComparisonOperator_Gt_GtE" in said
    assert "+    return x >= 3 and x % 2" in said
    assert (checkout / "bisector/part.py").read_text() == MODULE

    with (checkout / "tests/unit/test_part.py").open("a") as file:
        file.write("    assert not is_large(3)\n")
    run.run(checkout, ["bisector"], 10, 1)
    said = capsys.readouterr().out
    assert "1/1 killed" in said
    assert "2 of 2 killed" in said


def test_an_interrupted_session_goes_on(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tested: list[str] = []

    def test(trial: run.Trial, mutant: Mutant) -> WorkResult:
        tested.append(mutant.added)
        if len(tested) == 2:
            raise KeyboardInterrupt
        return WorkResult(WorkerOutcome.NORMAL, "", TestOutcome.KILLED)

    monkeypatch.setattr(run.Trial, "test", test)
    with pytest.raises(KeyboardInterrupt):
        run.run(checkout, ["bisector"], 10, 1)
    run.run(checkout, ["bisector"], 10, 1)
    assert len(tested) == 3
    assert tested[1] == tested[2] != tested[0]
    assert "2 of 2 killed" in capsys.readouterr().out


def test_tests_that_fail_anyway_kill_nothing(checkout: Path) -> None:
    (checkout / "tests/unit/test_part.py").write_text("def test_it():\n    assert False\n")
    with pytest.raises(SystemExit, match="fail without a mutant"):
        run.run(checkout, ["bisector"], 10, 1)


def test_what_the_configuration_leaves_out_exists() -> None:
    operators.register()
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutants"]
    for excluded in config["exclude-operators"]:
        assert any(re.match(excluded, name) for name in plugins.operator_names()), excluded
    for tests in (*config["then"].values(), [test.partition("::")[0] for test in config["own-only"]]):
        assert [path for path in tests if not (ROOT / path).exists()] == []
