"""From a run of a small kernel to its functions, instruction by instruction, with exact executions."""

from __future__ import annotations

import dataclasses
import gzip
import shutil
from pathlib import Path

import pytest

from bisector.adapters.guest.counting.block_counts import BlockCounts
from bisector.adapters.guest.counting.count_file import RunCounts
from bisector.adapters.guest.counting.counting_plugin import counting_plugin
from bisector.adapters.guest.counting.disassembly import annotated_functions
from bisector.adapters.guest.counting.symbol_table import read_symbols
from bisector.adapters.system import host_requirements
from bisector.adapters.system.architectures import X86_64
from bisector.errors import InfrastructureError, RequestError
from bisector.linux.annotated_code import AnnotatedFunction, CodePart
from bisector.linux.profile import Profile, Symbol
from bisector.ports import Kernel
from bisector.schemas.counted_functions import BLOCKS
from tests.support.bare_guest import build_kernel, execute_kernel


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Return the counts of the kernel's one run, twice, with the file of its blocks."""
    for program in ("gcc", "objcopy", "objdump", "nm", X86_64.emulator):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")
    folder = tmp_path_factory.mktemp("kernel")
    flat, symbols = build_kernel(folder)
    image = folder / "image"
    image.write_bytes((folder / "kernel.elf").read_bytes())
    listed = "\n".join(sorted([*symbols.splitlines(), "ffffffff80110000 T _etext"]))
    (folder / "System.map.gz").write_bytes(gzip.compress(listed.encode()))
    plugin = f"file={counting_plugin(folder / 'cache', X86_64)},profile=on"
    _, run = execute_kernel(flat, plugin)
    counts = BlockCounts()
    for _ in range(2):
        counts.add(RunCounts.model_validate(run, strict=False), read_symbols(image))
    kernel = Kernel("a" * 40, "tiny", "b", image, Path(), Path(), "6.1", "", 1.0, cached=True)
    counts.write(folder, kernel)
    own = {Symbol("leaf", "kernel"): 100.0}
    return Profile("tiny", own, exact=True, blocks=str(folder / BLOCKS))


def annotated_function(profile: Profile, name: str) -> AnnotatedFunction:
    (found,) = annotated_functions(profile, [name])
    return found


def listing(part: CodePart) -> list[tuple[float, str]]:
    return [(one.executions, one.text) for one in part.instructions]


def test_each_instruction_has_its_executions(profile: Profile) -> None:
    found = annotated_function(profile, "leaf")
    (part,) = found.parts
    assert listing(part)[:10] == [(10.0, "nop")] * 9 + [(10.0, "ret")]
    assert (found.known, found.own, found.odd, found.left_out) == (True, 100.0, 0, 0)


def test_calls_and_jumps_are_named(profile: Profile) -> None:
    (part,) = annotated_function(profile, "work").parts
    lines = listing(part)
    assert lines[:5] == [(1.0, "call leaf")] * 5
    assert "call __x86_indirect_thunk_rax" in [text for _, text in lines]
    assert all(times == 1.0 for times, _ in lines)
    (part,) = annotated_function(profile, "tail").parts
    assert listing(part)[:2] == [(1.0, "nop"), (1.0, "jmp leaf")]


def test_a_function_that_returns_past_its_callers_has_lines_that_nothing_executed(profile: Profile) -> None:
    (part,) = annotated_function(profile, "outer").parts
    assert [times for times, _ in listing(part)] == [1.0, 1.0, 0.0], "hlt"


def test_what_is_not_in_the_kernel_is_told(profile: Profile) -> None:
    found = annotated_function(profile, "schedule")
    assert (found.known, found.parts) == (False, ())


def test_profiles_without_blocks_name_the_command_that_makes_them(profile: Profile) -> None:
    with pytest.raises(RequestError, match="no counts of blocks") as refused:
        annotated_function(dataclasses.replace(profile, blocks=""), "leaf")
    assert "perfbisect workload run" in refused.value.cure
    with pytest.raises(RequestError, match="no counted profile"):
        annotated_function(dataclasses.replace(profile, exact=False), "leaf")


def test_a_kernel_that_is_gone_or_another_one_is_told_with_the_command(
    profile: Profile, tmp_path: Path
) -> None:
    blocks = tmp_path / BLOCKS
    text = gzip.decompress(Path(profile.blocks).read_bytes())
    there = dataclasses.replace(profile, blocks=str(blocks))
    image = Path(profile.blocks).with_name("image")

    def refusal(old: str, new: str) -> RequestError:
        blocks.write_bytes(gzip.compress(text.replace(old.encode(), new.encode())))
        with pytest.raises(RequestError) as refused:
            annotated_function(there, "leaf")
        return refused.value

    gone = refusal(str(image), str(tmp_path / "image"))
    assert "not on this machine" in gone.message
    assert gone.cure == f"build it again: perfbisect kernel build {'a' * 40} --recipe tiny"
    (tmp_path / "image").write_bytes(b"another one")
    assert "another kernel is there now" in refusal(str(image), str(tmp_path / "image")).message
    shutil.copy(image, tmp_path / "image")
    assert "symbols cannot be read" in refusal(str(image), str(tmp_path / "image")).message
    assert "cannot be read" in refusal('"runs":2', '"runs":0').message


def test_a_machine_without_objdump_is_told(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InfrastructureError, match="objdump") as refused:
        annotated_function(profile, "leaf")
    assert refused.value.cure == host_requirements.install("binutils")
