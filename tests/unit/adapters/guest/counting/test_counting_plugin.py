"""The plugin counts what arithmetic says, on both architectures; a QEMU that cannot load it is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bisector.adapters.guest.counting import counting_plugin as module
from bisector.adapters.guest.counting.counting_plugin import counting_plugin, plugin_argument
from bisector.adapters.system.architectures import MACHINES, X86_64, Machine
from bisector.errors import InfrastructureError
from bisector.ports import Counting
from bisector.schemas.kernel.cpu_model import cpu_model
from bisector.schemas.workload.counted_metrics import COUNTERS
from tests.support.bare_guest import COMPILERS, execute

MODEL = ",memory=on,predictor=12:8,L1d=32768:8:64,L1i=32768:8:64,L2=262144:4:64,LL=8388608:16:64"
TLBS = ",dTLB=262144:4:4096,iTLB=524288:8:4096,sTLB=6291456:12:4096"
KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest) -> Machine:
    found = MACHINES[request.param]
    for program in ("gcc", COMPILERS[found.arch][0], found.emulator):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")
    return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def counts(machine: Machine, cache: Path, folder: Path, arguments: str, **what: object) -> dict[str, int]:
    plugin = counting_plugin(cache, machine)
    head, *runs = execute(machine.arch, folder, f"file={plugin}{arguments}", **what)  # type: ignore[arg-type]
    assert head == {"counters": 1, "target": machine.guest}
    (found,) = runs  # the second end marker ends nothing
    assert found["run"] == 5
    return found


@pytest.mark.parametrize(
    ("pattern", "size", "stride", "passes", "l1", "l2", "last", "tlb", "both_tlbs"),
    [
        # What fits is read once; what does not is missed in every pass: the least recently used went.
        ("stream", 16 * KIB, 64, 4, 256, 256, 256, 4, 4),
        ("stream", 128 * KIB, 64, 4, 4 * 2048, 2048, 2048, 32, 32),
        ("stream", 1 * MIB, 64, 4, 4 * 16384, 4 * 16384, 16384, 4 * 256, 256),
        ("stream", 16 * MIB, 64, 2, 2 * 262144, 2 * 262144, 2 * 262144, 2 * 4096, 2 * 4096),
        ("stream", 1 * MIB, 16, 2, 2 * 16384, 2 * 16384, 16384, 2 * 256, 256),  # four accesses a line
        # One set of each cache.
        ("store", 16 * MIB, 4096, 2, 2 * 4096, 2 * 4096, 2 * 4096, 2 * 4096, 2 * 4096),
        ("chase", 16 * KIB, 64, 4, 256, 256, 256, 4, 4),
        ("chase", 1 * MIB, 64, 4, 4 * 16384, 4 * 16384, 16384, 4 * 16384, 256),  # a page further each time
        # Code goes through L1i and the TLB of instructions, and shares the rest.
        ("code", 16 * KIB, 64, 4, 256, 256, 256, 4, 4),
        ("code", 128 * KIB, 64, 4, 4 * 2048, 2048, 2048, 32, 32),
        ("code", 1 * MIB, 64, 4, 4 * 16384, 4 * 16384, 16384, 4 * 256, 256),
    ],
)
def test_misses_follow_the_closed_form(
    tmp_path: Path,
    cache: Path,
    machine: Machine,
    pattern: str,
    size: int,
    stride: int,
    passes: int,
    l1: int,
    l2: int,
    last: int,
    tlb: int,
    both_tlbs: int,
) -> None:
    found = counts(
        machine, cache, tmp_path, MODEL + TLBS, pattern=pattern, size=size, stride=stride, passes=passes
    )
    code = 4  # lines of the program itself, and a word on its stack
    kind, other, few = "d", "i", 2
    if pattern == "code":  # the loop around it is code, too, and has gone in each pass
        kind, other, few, code = "i", "d", code + 2 * passes, code + 2 * passes
    else:
        assert abs(found["stores" if pattern == "store" else "loads"] - passes * size // stride) <= 2
    assert abs(found[f"L1{kind}_misses"] - l1) <= few
    assert abs(found["L2_misses"] - l2) <= code
    assert abs(found["LL_misses"] - last) <= code
    assert abs(found[f"{kind}TLB_misses"] - tlb) <= few
    assert abs(found["sTLB_misses"] - both_tlbs) <= code
    assert found[f"L1{other}_misses"] <= code
    assert found[f"{other}TLB_misses"] <= code
    assert found["kernel"] == 0


@pytest.mark.parametrize(("way", "least", "most"), [(1, 0, 50), (2, 0, 50), (3, 4500, 5500)])
def test_a_branch_is_predicted_unless_it_goes_by_chance(
    tmp_path: Path, cache: Path, machine: Machine, way: int, least: int, most: int
) -> None:
    found = counts(
        machine, cache, tmp_path, ",predictor=12:8", pattern="branch", size=4096, stride=way, passes=10_000
    )
    assert least <= found["branch_misses"] <= most
    assert found["branches"] == 20_000
    taken = {1: 10_000, 2: 15_000, 3: 15_000}[way]  # the loop, and every other or each second one by chance
    assert abs(found["taken_branches"] - taken) < 200
    assert "loads" not in found


@pytest.mark.parametrize("pattern", ["stream", "store"])
def test_loads_and_stores_are_the_same_without_a_model(
    tmp_path: Path, cache: Path, machine: Machine, pattern: str
) -> None:
    kinds = ("loads", "stores")
    both = [
        counts(machine, cache, tmp_path, arguments, pattern=pattern, size=64 * KIB, stride=64, passes=4)
        for arguments in (",memory=on", MODEL + TLBS)
    ]
    assert both[0]["loads" if pattern == "stream" else "stores"] >= 4095
    assert [both[0][kind] for kind in kinds] == [both[1][kind] for kind in kinds]


def test_instructions_are_the_same_however_much_else_is_counted(
    tmp_path: Path, cache: Path, machine: Machine
) -> None:
    def user(arguments: str, passes: int) -> int:
        found = counts(
            machine, cache, tmp_path, arguments, pattern="chase", size=4096, stride=64, passes=passes
        )
        return found["user"]

    alone = user("", 1000)
    assert alone == user(f"{MODEL}{TLBS}", 1000)
    assert (alone - user("", 500)) % (500 * 64) == 0  # so many instructions a step


def test_a_plugin_is_compiled_once_and_again_for_other_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(X86_64.emulator) is None or shutil.which("gcc") is None:
        pytest.skip("no QEMU or no gcc")
    first = counting_plugin(tmp_path / "cache", X86_64)
    written = first.stat().st_mtime_ns
    assert counting_plugin(tmp_path / "cache", X86_64) == first
    assert first.stat().st_mtime_ns == written
    shutil.copytree(module.SOURCES, tmp_path / "sources")
    with (tmp_path / "sources" / "counters.c").open("a") as file:
        file.write("/* another version */\n")
    monkeypatch.setattr(module, "SOURCES", tmp_path / "sources")
    assert counting_plugin(tmp_path / "cache", X86_64) != first


@pytest.mark.parametrize(
    "says", ["-plugin: invalid option", "plugin requires API version 1, but 2 is the least"]
)
def test_a_qemu_that_cannot_load_it_is_named_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    qemu = tmp_path / X86_64.emulator
    version = '[ "$1" != --version ] || { echo "QEMU emulator version 9.1"; exit; }'
    qemu.write_text(f'#!/bin/sh\n{version}\necho "{says}"\nexit 1\n')
    qemu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(InfrastructureError, match=r"version 9\.1\) cannot count") as refused:
        counting_plugin(tmp_path / "cache", X86_64)
    assert says in refused.value.details
    assert not list((tmp_path / "cache").rglob("counters-*"))


@pytest.mark.parametrize("name", COUNTERS)
def test_the_plugin_is_asked_for_what_a_metric_needs(tmp_path: Path, name: str) -> None:
    said = plugin_argument(tmp_path / "a,b.so", Counting((name,)), tmp_path / "out")
    words = {word.partition("=")[0] for word in said.split(",") if word}
    assert said.startswith(f"file={tmp_path}/a,,b.so,out=")
    needs = COUNTERS[name].needs
    assert ("memory" in words, "predictor" in words, "L1d" in words) == (
        "memory" in needs,
        bool({"predictor", "caches"} & needs),
        "caches" in needs,
    )


def test_a_profile_has_the_misses_of_the_processor_that_is_named(tmp_path: Path) -> None:
    plain = plugin_argument(tmp_path / "p.so", Counting(profile=True), tmp_path / "out")
    assert "profile=on" in plain
    assert "L1d" not in plain
    said = plugin_argument(
        tmp_path / "p.so", Counting(profile=True, cpu="nehalem", models=True), tmp_path / "out"
    )
    assert f"L1i={cpu_model('nehalem').L1i.argument()}" in said
