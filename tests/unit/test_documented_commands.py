"""Every command line of README.md and docs/ is understood by perfbisect; most are carried out, on fakes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisector.interfaces.cli import run
from tests.support.command_line import START, Bench, parse

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]

COMMAND = re.compile(r"(?:^|[;)] )(perfbisect .*?)(?:\s+#.*|\s+;;.*|; .*| [|>] .*)?$")
"""A command of a code block, without the comment or what the shell does next."""

ELSEWHERE = {
    "perfbisect start": "the fixture `ended` starts one",
    "perfbisect resume": "the bisection has ended",
    "perfbisect mark": "the bisection has ended: tests/integration/test_cli_on_fakes.py",
    "perfbisect discard": "the bisection has ended: tests/integration/test_cli_on_fakes.py",
    "perfbisect pause": "the bisection has ended: tests/integration/test_queue_on_fakes.py",
    "perfbisect priority": "the bisection has ended: tests/integration/test_queue_on_fakes.py",
    "perfbisect worker": "ends when it is told to: tests/integration/test_queue_on_fakes.py",
    "perfbisect web": "ends when it is told to: tests/unit/interfaces/cli/test_web.py",
    "perfbisect --server": "needs a server: tests/integration/web/test_same_at_a_server.py",
    "perfbisect series": "measures: tests/unit/interfaces/cli/groups/test_series_commands.py",
    "perfbisect mail": "needs messages: tests/integration/mail/test_mail_on_fakes.py",
    "perfbisect report --mail-draft": "tests/integration/mail/test_mail_on_fakes.py",
    "perfbisect token": "makes tokens: tests/unit/interfaces/cli/groups/test_token.py",
    "perfbisect alert": "needs alerts: tests/unit/interfaces/cli/groups/test_alert.py",
    "perfbisect testbed": "other testbeds: tests/integration/test_queue_on_fakes.py",
    "perfbisect cancel": "the bisection has ended: tests/integration/test_cli_on_fakes.py",
    "perfbisect plan": "tests/integration/test_installed_wheel.py",
    "perfbisect simulate": "tests/integration/test_installed_wheel.py",
    "perfbisect kernel build": "compiles a kernel: tests/integration/builds",
    "perfbisect kernel check": "compiles with each compiler: tests/integration/builds",
    "perfbisect calibrate": "tests/unit/interfaces/cli/test_calibrate.py",
    "perfbisect workload check": "measures: tests/unit/interfaces/cli/groups/test_workload.py",
    "perfbisect workload run": "measures: tests/unit/interfaces/cli/groups/test_workload_run.py",
    "perfbisect db move": "needs a server: tests/unit/interfaces/cli/groups/test_db.py",
    "perfbisect lab check": "asks machines: tests/unit/interfaces/cli/groups/test_lab.py",
    "perfbisect db": "changes databases: tests/unit/interfaces/cli/groups/test_db.py",
    "perfbisect try": "measures: tests/unit/app/attempts/test_accept_attempt.py",
    "perfbisect doctor": "asks this machine: tests/unit/interfaces/cli/test_doctor.py",
    "perfbisect init": "asks questions: tests/unit/interfaces/cli/test_init.py",
}
"""Beginnings of commands that are only parsed here, and where they are carried out."""


def commands(page: str) -> Iterator[str]:
    """Yield the commands of a page's code blocks, which are indented or fenced, in their order."""
    fenced = False
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        found = COMMAND.search(line.strip()) if fenced or line.startswith("    ") else None
        if found is not None:
            yield found[1].rstrip()


def inline(page: str) -> Iterator[str]:
    """Yield the commands that a page's text has in backticks, but for beginnings and placeholders."""
    text = re.sub(
        r"^(?:    .*|```.*?^```)$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S
    )
    for found in re.findall(r"`(perfbisect [^`\n]+)`", text):
        if "..." not in found and "COMMAND" not in found and "--config" not in found:
            yield found


def carried_out(page: str) -> Iterator[str]:
    """Yield the commands of a page that are carried out here."""
    return (line for line in commands(page) if not line.startswith(tuple(ELSEWHERE)))


ALL = [(page, line) for page in PAGES for line in (*commands(page), *inline(page))]


def test_commands_are_found() -> None:
    assert len(ALL) > 80
    assert ("README.md", "perfbisect resume") in ALL
    assert ("docs/reference/exit-codes.md", "perfbisect report --output culprit.txt") in ALL


@pytest.mark.parametrize(("page", "line"), ALL)
def test_perfbisect_understands_it(page: str, line: str) -> None:
    parse(line)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A state folder with a bisection that has ended, its id, and the id of one of its commits."""
    folder = tmp_path_factory.mktemp("ended")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PERFBISECT_STATE_DIR", str(folder / "state"))
        patch.setenv("PERFBISECT_CACHE_DIR", str(folder / "cache"))
        bench = Bench(folder, patch)
        assert run(START) == 0
    (identity,) = [path.name for path in (folder / "state" / "bisections").iterdir()]
    return folder / "state", identity, bench.lab.graph.shas[3]


@pytest.mark.parametrize("page", [page for page in PAGES if any(carried_out(page))])
def test_a_page_works_from_top_to_bottom(
    page: str, ended: tuple[Path, str, str], bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    state, identity, commit = ended
    shutil.copytree(state, bench.state)
    for name, numbers in (("old", range(100, 105)), ("new", range(120, 125))):
        Path(f"{name}.txt").write_text("".join(f"{number}\n" for number in numbers), encoding="utf-8")
        Path(f"{name}.folded").write_text(f"main;read {numbers[0]}\nmain;write 50\n", encoding="utf-8")
    shutil.copy(ROOT / "playbooks/inventory/laptop.yml", "lab.yml")
    for line in carried_out(page):
        said = line.removeprefix("perfbisect ")
        for word, meant in (("ID", identity), ("REV", commit), ("rt-00", "good"), ("rt-16", "bad")):
            said = re.sub(rf"(?<![\w/-]){word}(?![\w/-])", meant, said)
        code = run(said.split())
        assert code == 0, f"{line}: {capsys.readouterr().err}"
