"""Who may import whom: the contracts of pyproject.toml are kept, and each of them notices a violation."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return contracts


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    program = "from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_import_contracts_are_kept() -> None:
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


SEARCH = next(c["layers"] for c in _contracts() if c.get("containers") == ["bisector.search"])
HIGHEST, LOWEST = SEARCH[0].split(" ")[0], SEARCH[-1].split(" ")[0]

VIOLATIONS = {
    "layers": ("bisector.model.violation", "bisector.app"),
    "interfaces": ("bisector.interfaces.cli.violation", "bisector.adapters"),
    "report": ("bisector.report.violation", "bisector.ports"),
    "engine and adapters": ("bisector.engine.violation", "bisector.testing"),
    "schemas and ports": ("bisector.schemas.violation", "bisector.search"),
    "adapters": ("bisector.adapters.system.violation", "bisector.adapters.guest"),
    "search": (f"bisector.search.{LOWEST}", f"bisector.search.{HIGHEST}"),
    "no cycles": ("bisector.stats.violation", "bisector.stats.cycle"),
    "the pure folders": ("bisector.linux.violation", "time"),
    "each technology": ("bisector.adapters.guest.violation", "subprocess"),
    "each library": ("bisector.engine.violation", "pydantic"),
}
"""Start of a contract's name -> (importer, imported): an import that it forbids."""


@pytest.fixture(scope="module")
def report_of_violations(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of a copy of this repository with VIOLATIONS in it."""
    root = tmp_path_factory.mktemp("repository")
    shutil.copytree(ROOT / "bisector", root / "bisector", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for importer, imported in [*VIOLATIONS.values(), ("bisector.stats.cycle", "bisector.stats.violation")]:
        with (root / f"{importer.replace('.', '/')}.py").open("a", encoding="utf-8") as file:
            file.write(f"\nimport {imported}\n")
    return _lint(root).stdout


@pytest.mark.parametrize("contract", [contract["name"] for contract in _contracts()])
def test_a_contract_notices_a_violation(contract: str, report_of_violations: str) -> None:
    """Every contract of pyproject.toml has its row of VIOLATIONS; the longest fitting key counts."""
    key = max((key for key in VIOLATIONS if contract.startswith(key)), key=len)
    assert f"{contract} BROKEN" in report_of_violations
    importer, imported = VIOLATIONS[key]
    line = f"{importer} -> {imported}"
    if key == "no cycles":  # told with the names below their folder
        line = line.replace(f"{importer.rpartition('.')[0]}.", ".")
    assert line in report_of_violations


def test_a_status_is_changed_only_from_statuses_that_are_named() -> None:
    """What another process has set meanwhile stays: a bisection that was cancelled is not queued again."""
    anything = []
    for path in sorted((ROOT / "bisector").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "set_status"
                and not any(keyword.arg == "expected" for keyword in call.keywords)
            ):
                anything.append(f"{path.relative_to(ROOT)}:{ast.unparse(call.args[1])}")
    assert anything == ["bisector/app/upkeep/retention.py:bisections.REMOVING"], "each with 'expected'"
