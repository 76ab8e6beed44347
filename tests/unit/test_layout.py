"""Where files are: every module has a test of its name, folders and modules stay small, nothing strays.

Each rule is a function from the root of a source tree to its violations. This repository must have none.
A small tree that breaks one rule must have exactly that violation.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

COVERED_ELSEWHERE = "tests/covered_elsewhere.toml"
"""Modules without a test of their name: "bisector/x/y.py" = "tests/...: why"."""

MAX_FILES_PER_FOLDER = 20
"""A folder of more files is no longer read at a glance."""

NOT_COUNTED = frozenset({"__init__.py", "conftest.py"})

LARGER_FOLDERS: dict[str, int] = {}
"""Folders that may hold more files: how many. These numbers only shrink."""

MAX_LINES_PER_MODULE = 300

LONGER_MODULES: dict[str, int] = {}
"""Modules of `bisector` that may be longer: how many lines. These numbers only shrink."""

SAME_NAME_IN_TWO_LAYERS = {
    "calibrate": "the use case and its command",
    "doctor": "the use case and its command",
    "lab": "the inventory's schema and the command that shows it",
    "plan": "the use case and its command",
    "profile": "comparison of profiles and its command",
    "workload": "the schema and its command",
}
"""Names that modules of different folders share, each with what they have in common."""

TOP_LEVEL = frozenset(
    {"bisector", "playbooks", "kernels", "workloads", "tests", "docs", "packaging", "pyproject.toml"}
    | {"README.md", "Makefile", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
)
"""What may lie at the top, besides names that begin with a dot and what tools leave (TOOL_OUTPUT)."""

TOOL_OUTPUT = frozenset({"build", "dist"})
"""What `make clean` removes."""

Rule = Callable[[Path], Iterator[str]]


def modules_without_a_test(root: Path) -> Iterator[str]:
    """Every module has the test of its name in the mirrored folder, or an entry that says what covers it."""
    table = root / COVERED_ELSEWHERE
    tables = tomllib.loads(table.read_text(encoding="utf-8")) if table.exists() else {"covered": {}}
    covered: dict[str, str] = tables["covered"]
    modules = {str(path.relative_to(root)): path for path in _python_files(root / "bisector")}
    for name, path in modules.items():
        if name not in covered and not _test_of(root, name).exists() and _has_code(path):
            yield f"{name}: neither {_test_of(root, name).relative_to(root)} nor in {COVERED_ELSEWHERE}"
    for name, entry in covered.items():
        if name not in modules:
            yield f"{COVERED_ELSEWHERE}: {name} does not exist"
        elif _test_of(root, name).exists():
            yield f"{COVERED_ELSEWHERE}: {name} has a test of its name; remove the entry"
        test, _, reason = entry.partition(": ")
        if not (root / test).is_file() or not reason:
            yield f"{COVERED_ELSEWHERE}: {name}: '{entry}' is not 'existing test file: why'"
        elif name in modules and not _mentions(root, root / test, name, reason):
            yield f"{COVERED_ELSEWHERE}: {name}: {test} does not mention the module"


def crowded_folders(root: Path) -> Iterator[str]:
    """No folder holds more than MAX_FILES_PER_FOLDER Python files, besides NOT_COUNTED."""
    counts: dict[str, int] = defaultdict(int)
    for part in ("bisector", "tests"):
        for path in _python_files(root / part):
            counts[str(path.parent.relative_to(root))] += path.name not in NOT_COUNTED
    for folder, count in counts.items():
        if count > (limit := LARGER_FOLDERS.get(folder, MAX_FILES_PER_FOLDER)):
            yield f"{folder}: {count} Python files, {limit} are allowed"


def long_modules(root: Path) -> Iterator[str]:
    """No module of `bisector` has more than MAX_LINES_PER_MODULE lines."""
    for path in _python_files(root / "bisector"):
        name, lines = str(path.relative_to(root)), len(path.read_text(encoding="utf-8").splitlines())
        if lines > (limit := LONGER_MODULES.get(name, MAX_LINES_PER_MODULE)):
            yield f"{name}: {lines} lines, {limit} are allowed"


def modules_of_one_name(root: Path) -> Iterator[str]:
    """No two modules of `bisector` share a name, except SAME_NAME_IN_TWO_LAYERS."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path in _python_files(root / "bisector"):
        folders[path.stem].append(str(path.parent.relative_to(root)))
    for name, where in folders.items():
        if len(where) > 1 and name not in {"__init__", *SAME_NAME_IN_TWO_LAYERS}:
            yield f"{name}.py is in {' and '.join(where)}"


def strays_at_the_top(root: Path) -> Iterator[str]:
    """The top level holds what TOP_LEVEL names, and names that begin with a dot."""
    for path in sorted(root.iterdir()):
        if not path.name.startswith(".") and path.name not in TOP_LEVEL | TOOL_OUTPUT:
            yield f"{path.name}: does not belong at the top level"


def imports_of_integration(root: Path) -> Iterator[str]:
    """Tests that need nothing installed import nothing from those that do."""
    for folder in ("tests/unit", "tests/contract", "tests/golden", "tests/bad_input", "tests/support"):
        for path in _python_files(root / folder):
            for node in ast.walk(ast.parse(path.read_bytes())):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if any(name.startswith("tests.integration") for name in names):
                    yield f"{path.relative_to(root)}: imports from tests/integration"


DRAWS_ON_THE_TERMINAL = "bisector/interfaces/cli/progress.py"
"""The one module that writes around the exit of text: rich draws there, with texts that are printable."""

EXIT = "bisector/interfaces/cli/terminal.py"


def writes_around_the_exit(root: Path) -> Iterator[str]:
    """Only the command line prints, and only through the streams that `terminal` guards."""
    for path in _python_files(root / "bisector"):
        name = str(path.relative_to(root))
        for node in ast.walk(ast.parse(path.read_bytes())):
            what = _write_around(node, prints=name.startswith("bisector/interfaces/"))
            if what and name not in (EXIT, DRAWS_ON_THE_TERMINAL):
                yield f"{name}:{getattr(node, 'lineno', 0)}: {what}"


def _write_around(node: ast.AST, *, prints: bool) -> str:
    """Return how a node writes to the terminal, '' if it does not. prints: whether its module may print."""
    match node:
        case ast.Call(func=ast.Name(id="print"), keywords=more) if not prints:
            return "" if any(k.arg == "file" for k in more) else "prints, which is the command line's"
        case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr") if not prints:
            return "writes to stdout or stderr, which is the command line's"
        case ast.Attribute(attr="__stdout__" | "__stderr__") | ast.Name(id="unguarded"):
            return "writes around the exit (interfaces/cli/terminal.py)"
        case ast.Call(func=ast.Attribute(attr="write"), args=[ast.Constant(value=1 | 2), *_]):
            return "writes to a descriptor around the exit"
        case ast.Call(func=ast.Attribute(attr="echo" | "secho") | ast.Name(id="Console")):
            return "prints with a library that draws"
        case ast.Constant(value="/dev/tty"):
            return "opens the terminal itself"
    return ""


READ_THE_DATE = {
    "bisector/app/wiring.py": "the clock of the records",
    "bisector/adapters/mail/smtp.py": "the date of a mail",
    "bisector/adapters/mail/webhook.py": "the time in a signature",
    "bisector/adapters/store/memory_store.py": "when a bisection changed last",
    "bisector/adapters/store/sqlite_file.py": "the database's clock",
    "bisector/adapters/build/build_play.py": "since when a builder is taken, for people",
    "bisector/adapters/machine/machine_facts.py": "whether a machine's date is right",
    "bisector/adapters/system/machine_locks.py": "since when a lock is taken, for people",
}
"""Modules that ask for the date, and what for. A deadline by it passes, or never does, when one sets it."""

JUDGES_GUESTS = ("bisector/adapters/agent", "bisector/adapters/machine")
"""Folders whose deadlines blame a kernel or its machine: they stand still while this process is stopped."""


def deadlines_by_a_wrong_clock(root: Path) -> Iterator[str]:
    """Deadlines are by a clock that nobody sets, and where a kernel is judged by `awake_seconds`."""
    for path in _python_files(root / "bisector"):
        name = str(path.relative_to(root))
        for node in ast.walk(ast.parse(path.read_bytes())):
            if not isinstance(node, ast.Attribute | ast.Compare | ast.BinOp):
                continue
            text = ast.unparse(node)
            if isinstance(node, ast.Attribute) and text in ("time.time", "datetime.now", "time.time_ns"):
                if name not in READ_THE_DATE:
                    yield f"{name}:{node.lineno}: {text} is no clock for deadlines; see READ_THE_DATE"
            elif name.startswith(JUDGES_GUESTS) and re.search(
                r"time\.monotonic\(\) \+|[<>]=? time\.monotonic\(\)|time\.monotonic\(\) [<>]", text
            ):
                yield f"{name}:{node.lineno}: a deadline by time.monotonic; use awake_seconds"


def clocks_of_everybody(root: Path) -> Iterator[str]:
    """A test replaces the clock of one module: threads that other tests left use the same `time` module."""
    for path in _python_files(root / "tests"):
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(r"setattr\([^()]*\btime(\.|, \")(sleep|monotonic)\"", text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path.relative_to(root)}:{line}: replace the module's name 'time', not {found[2]} for all"


def signals_from_elsewhere(root: Path) -> Iterator[str]:
    """Only `processes` sends signals and reads other processes in /proc: it knows whom it meets."""
    for path in _python_files(root / "bisector"):
        name = str(path.relative_to(root))
        text = path.read_text(encoding="utf-8")
        if name != PROCESSES and re.search(r"os\.(kill|killpg|pidfd_open)\(|\"/proc/\{|f\"/proc/", text):
            yield f"{name}: leave signals and /proc/<pid> to {PROCESSES}"


PROCESSES = "bisector/adapters/system/processes.py"


RULES: tuple[Rule, ...] = (
    deadlines_by_a_wrong_clock,
    clocks_of_everybody,
    signals_from_elsewhere,
    writes_around_the_exit,
    modules_without_a_test,
    crowded_folders,
    long_modules,
    modules_of_one_name,
    strays_at_the_top,
    imports_of_integration,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_this_repository_keeps(rule: Rule) -> None:
    assert list(rule(ROOT)) == []


VIOLATIONS: tuple[tuple[Rule, dict[str, str], str], ...] = (
    (
        deadlines_by_a_wrong_clock,
        {"bisector/engine/a.py": "import time\nend = time.time() + 1"},
        "a.py:2: time.time",
    ),
    (
        deadlines_by_a_wrong_clock,
        {"bisector/adapters/machine/a.py": "import time\nend = time.monotonic() + 1"},
        "a.py:2: a deadline by time.monotonic",
    ),
    (
        clocks_of_everybody,
        {"tests/a.py": "\nmonkeypatch.setattr" + '("bisector.b.time.sleep", list.append)'},
        "tests/a.py:2: replace the module's name 'time', not sleep for all",
    ),
    (
        clocks_of_everybody,
        {"tests/a.py": "monkeypatch.setattr" + '(b.time, "monotonic", clock)'},
        "tests/a.py:1: replace the module's name 'time', not monotonic for all",
    ),
    (signals_from_elsewhere, {"bisector/a.py": "os.kill(1, 9)"}, "bisector/a.py: leave signals"),
    (
        signals_from_elsewhere,
        {"bisector/a.py": "open(f'/proc/{pid}/stat')".replace("'", '"')},
        "leave signals",
    ),
    (modules_without_a_test, {"bisector/a.py": "x = 1"}, "bisector/a.py: neither tests/unit/test_a.py nor"),
    (modules_without_a_test, {"bisector/a/__init__.py": "def f(): ..."}, "bisector/a/__init__.py: neither"),
    (
        modules_without_a_test,
        {"tests/b.py": "", COVERED_ELSEWHERE: '[covered]\n"bisector/a.py" = "tests/b.py: why"'},
        "bisector/a.py does not exist",
    ),
    (
        modules_without_a_test,
        {
            "bisector/a.py": "",
            "tests/unit/test_a.py": "from bisector import a",
            COVERED_ELSEWHERE: '[covered]\n"bisector/a.py" = "tests/unit/test_a.py: it is there"',
        },
        "bisector/a.py has a test of its name",
    ),
    (
        modules_without_a_test,
        {"bisector/a.py": "", COVERED_ELSEWHERE: '[covered]\n"bisector/a.py" = "tests/unit/test_b.py: gone"'},
        "is not 'existing test file: why'",
    ),
    (
        modules_without_a_test,
        {
            "bisector/a.py": "",
            "tests/support/c.py": "from bisector import other",
            "tests/b.py": "from tests.support import c",
            COVERED_ELSEWHERE: '[covered]\n"bisector/a.py" = "tests/b.py: why"',
        },
        "tests/b.py does not mention the module",
    ),
    *(
        (writes_around_the_exit, {"bisector/interfaces/a.py" if cli else "bisector/a.py": code}, complaint)
        for cli, code, complaint in (
            (False, "print('x')", "a.py:1: prints"),
            (False, "import sys\nsys.stderr.write('x')", "a.py:2: writes to stdout or stderr"),
            (True, "import sys\nsys.__stdout__.write('x')", "around the exit"),
            (True, "import os\nos.write(1, b'x')", "to a descriptor"),
            (True, "open('/dev/tty', 'w')", "opens the terminal"),
            (True, "import typer\ntyper.echo('x')", "with a library"),
            (True, "from rich.console import Console\nConsole()", "with a library"),
            (True, "f(unguarded)", "around the exit"),
        )
    ),
    (crowded_folders, {f"bisector/m{number}.py": "" for number in range(21)}, "bisector: 21 Python files"),
    (long_modules, {"bisector/a.py": "x = 1\n" * 301}, "bisector/a.py: 301 lines"),
    (modules_of_one_name, {"bisector/a/c.py": "", "bisector/b/c.py": ""}, "c.py is in bisector/"),
    (strays_at_the_top, {"notes.txt": ""}, "notes.txt"),
    (
        imports_of_integration,
        {"tests/unit/test_a.py": "from tests.integration.test_b import c"},
        "tests/unit/test_a.py: imports from tests/integration",
    ),
)


@pytest.mark.parametrize(("rule", "files", "complaint"), VIOLATIONS)
def test_a_violation_is_found(rule: Rule, files: dict[str, str], complaint: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = list(rule(tmp_path))
    assert len(found) == 1
    assert complaint in found[0]


def test_the_exceptions_are_still_needed() -> None:
    """A folder or module that shrank, or a name that is no longer shared, leaves its list of exceptions."""
    for folder, allowed in LARGER_FOLDERS.items():
        count = sum(path.name not in NOT_COUNTED for path in (ROOT / folder).glob("*.py"))
        assert count > MAX_FILES_PER_FOLDER, f"{folder}: {count} of {allowed}"
    for module, allowed in LONGER_MODULES.items():
        lines = len((ROOT / module).read_text(encoding="utf-8").splitlines())
        assert lines > MAX_LINES_PER_MODULE, f"{module}: {lines} of {allowed}"
    names = [path.stem for path in _python_files(ROOT / "bisector")]
    for name in SAME_NAME_IN_TWO_LAYERS:
        assert names.count(name) > 1, f"there is one {name}.py only"


def _python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def _test_of(root: Path, module: str) -> Path:
    """Return where the test of a module belongs; of a package `x`: `test_x.py` beside its folder."""
    path = Path(module).relative_to("bisector")
    if path.name == "__init__.py":
        path = path.parent.with_suffix(".py") if path.parent.name else Path("bisector.py")
    return root / "tests" / "unit" / path.with_name(f"test_{path.name}")


def _mentions(root: Path, test: Path, module: str, reason: str) -> bool:
    """Return whether a test, or a module of tests/support that it imports, has the module's name in it.

    What the reason has in backticks, such as a command or what the module defines, is as good.
    """
    path = Path(module)
    words = [path.parent.name if path.name == "__init__.py" else path.stem, *re.findall("`(.+?)`", reason)]
    texts = [test.read_text(encoding="utf-8")]
    for helper in _python_files(root / "tests" / "support"):
        if re.search(rf"tests\.support(\.| import .*\b){helper.stem}\b", texts[0]):
            texts.append(helper.read_text(encoding="utf-8"))
    return any(re.search(rf"\b{re.escape(word)}\b", text) for text in texts for word in words)


def _has_code(path: Path) -> bool:
    """Return whether a module needs a test; an `__init__.py` that only names what others hold does not."""
    if path.name != "__init__.py":
        return True
    nodes = ast.parse(path.read_bytes()).body
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in nodes)
