"""What `cost` of db-aio says a command has cost: the program is compiled and run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bisector.adapters.system.architectures import X86_64
from bisector.resources import resource

SPIN = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("cost") / "cost"
    source = resource("workloads") / "db-aio" / "fio" / "cost.c"
    subprocess.run([*X86_64.compiler(), "-O2", "-Wall", "-Werror", "-o", str(built), str(source)], check=True)
    return built


def cost(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *words], capture_output=True, text=True, check=False)


def cpu(text: str) -> int:
    return int(next(line for line in text.splitlines() if line.startswith("cpu: ")).split()[1])


def test_output_environment_and_code_pass_through(program: Path) -> None:
    done = cost(program, "A=with space", "sh", "-c", 'echo "$A"; exit 3')
    assert done.stdout.startswith("with space\ncpu: ") and done.stdout.splitlines()[1].endswith(" us")
    assert done.returncode == 3
    assert cost(program, "perfbisect-nowhere").returncode == 127
    assert cost(program).returncode == 2


def test_what_daemonises_is_waited_for_and_counted(program: Path) -> None:
    idle = cpu(cost(program, "sh", "-c", "true").stdout)
    daemon = cost(program, "sh", "-c", f"({SPIN}) >/dev/null 2>&1 & exit 0")
    assert cpu(daemon.stdout) > idle + 5000  # 30,000 rounds of a shell take 20 ms and more


def test_fios_document_is_wrapped_and_its_ios_are_added_up(program: Path) -> None:
    said = (
        '{"jobs": [{"read": {"total_ios" : 3}, "write": {"total_ios": 40}}, {"read": {"total_ios" : 500}}]}'
    )
    done = cost(program, "--fio", "sh", "-c", f"echo 'fio: a warning'; echo '{said}'")
    found = json.loads(done.stdout)
    assert found["ios"] == 543
    assert found["fio"] == json.loads(said)
    assert found["cpu"] > 0
    assert json.loads(cost(program, "--fio", "true").stdout)["fio"] is None
