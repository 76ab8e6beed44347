"""What profilers print, read: perf script, perf report, opreport, ftrace, folded stacks; and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.parsers.profiles import read
from bisector.errors import RequestError
from bisector.linux.profile import Symbol

CHAINS = """\
swapper     0 [001] 26899.270597:     250000 cpu-clock:u:
\tffffffff813a2293 finish_task_switch.isra.0+0x93 ([kernel.kallsyms])
\tffffffff821f53d4 __schedule+0x3d4 ([kernel.kallsyms])
\t    7fd13cbd58a8 [unknown] ([unknown])

kworker/1:2-ev  9349/9349 26899.270832:     250000 cpu-clock:u:
\t           16231 memmove+0xba1 (/usr/lib/libc.so.6)

my task  9349 26899.271:     500000 cpu-clock:u:
\tffffffffc0001000 ext4_read+0x3 ([ext4])
\tffffffff821f53d4 vfs_read+0x3d4 (/lib/modules/6.1/build/vmlinux)
\t           20d07 read (/usr/lib/libc.so.6)
"""

FLAT = """\
    perf  1219 [000]   123.4567:          1 cycles:  ffffffff8106 native_write_msr+0x6 ([kernel.kallsyms])
    bash  1220 [000]   123.4569:          9 cycles:      7f12 main+0x6 (/bin/bash)
"""

REPORT = """\
# Total Lost Samples: 0
#
# Samples: 12K of event 'cycles:ppp'
# Event count (approx.): 580250000
#
# Children      Self  Command  Shared Object      Symbol
# ........  ........  .......  .................  ......................
#
    10.52%     0.00%  java     [kernel.vmlinux]   [k] smp_apic_timer_interrupt
            |
            ---smp_apic_timer_interrupt
               |--2.63%--0
     5.24%     5.04%  java     [kernel.vmlinux]   [k] update_cfs_shares
     1.00%     1.00%  my prog  libc-2.31.so       [.] memmove
     0.50%     0.50%  other    libc-2.31.so       [.] memmove

# Samples: 3K of event 'faults'
    99.00%    99.00%  java     [kernel.vmlinux]   [k] handle_mm_fault
"""

OPREPORT = """\
CPU: Core 2, speed 2667 MHz (estimated)
samples  %        image name               symbol name
400      40.0000  vmlinux                  schedule
200      20.0000  libc-2.5.so              memmove
"""

TRACE = """\
  Function                               Hit    Time            Avg             s^2
  --------                               ---    ----            ---             ---
  schedule                             22943    1994458.706 us     86.931 us     12.5 us
  memmove                                  3    6.000 us        2.000 us        0.000 us
  Function                               Hit    Time            Avg             s^2
  --------                               ---    ----            ---             ---
  memmove                                  1    4.000 us        4.000 us        0.000 us
"""


def written(folder: Path, text: str, name: str = "profile.txt") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_perf_script_with_call_chains(tmp_path: Path) -> None:
    found = read(written(tmp_path, CHAINS))
    assert (found.event, found.samples, found.total) == ("cpu-clock", 3, 1_000_000)
    assert found.own == {
        Symbol("finish_task_switch", "kernel"): 250_000,
        Symbol("memmove", "user"): 250_000,
        Symbol("ext4_read", "kernel"): 500_000,
    }
    assert found.whole[Symbol("vfs_read", "kernel")] == 500_000
    assert {stack[0].name for stack in found.stacks} == {"swapper", "kworker", "my task"}


def test_perf_script_without_call_chains(tmp_path: Path) -> None:
    found = read(written(tmp_path, FLAT))
    assert found.own == {Symbol("native_write_msr", "kernel"): 1, Symbol("main", "user"): 9}
    assert (found.whole, found.stacks) == ({}, {})


def test_perf_report_with_children_adds_up_processes_and_takes_the_first_event(tmp_path: Path) -> None:
    found = read(written(tmp_path, REPORT))
    assert (found.event, found.samples) == ("cycles", 12_000)
    assert found.share(Symbol("smp_apic_timer_interrupt", "kernel"), whole=True) == pytest.approx(0.1052)
    assert found.share(Symbol("memmove", "user")) == pytest.approx(0.015)
    assert Symbol("handle_mm_fault", "kernel") not in found.own
    assert found.notes == ("of 2 events the first, cycles, is shown",)
    assert found.cut > 0


def test_perf_report_without_children(tmp_path: Path) -> None:
    found = read(written(tmp_path, "    60.00%  ls  ld.so  [.] strcmp\n    40.00%  ls  [kernel]  [k] read\n"))
    assert found.own == {Symbol("strcmp", "user"): 60.0, Symbol("read", "kernel"): 40.0}
    assert (found.whole, found.cut) == ({}, 0.0)


def test_opreport_tells_kernel_and_library_apart(tmp_path: Path) -> None:
    found = read(written(tmp_path, OPREPORT))
    assert found.own == {Symbol("schedule", "kernel"): 40.0, Symbol("memmove", "user"): 20.0}
    assert found.samples == 1000  # 600 are 60%
    assert found.cut == pytest.approx(0.2)


def test_function_profile_of_several_cpus(tmp_path: Path) -> None:
    found = read(written(tmp_path, TRACE))
    assert found.calls[Symbol("memmove", "kernel")] == 4
    assert found.spent[Symbol("memmove", "kernel")] == 10.0


def test_a_folder_with_a_file_for_each_cpu(tmp_path: Path) -> None:
    first, second = TRACE.split("  Function")[1:]
    written(tmp_path, "  Function" + first, "function0")
    written(tmp_path, "  Function" + second, "function10")
    written(tmp_path, "not a profile", "function_names")
    found = read(str(tmp_path))
    assert found.calls[Symbol("memmove", "kernel")] == 4
    assert found.name == tmp_path.name


def test_folded_stacks(tmp_path: Path) -> None:
    found = read(written(tmp_path, "java;main;sys_read_[k] 12\njava;main 3\n"))
    assert found.own == {Symbol("sys_read", "kernel"): 12, Symbol("main"): 3}
    assert found.samples == 15


def perf(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "bin" / "perf"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_what_perf_printed_where_it_recorded_goes_before_the_recording(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(b"PERFILE2rest")
    written(tmp_path, CHAINS, "perf.script")
    assert read(str(tmp_path)).samples == 3


@pytest.mark.parametrize("magic", [b"PERFILE2", b"2ELIFREP"])
def test_a_recording_is_read_by_perf_with_the_symbols_beside_it(
    magic: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of either byte order, and whoever owns it: root recorded it, and another user reads it."""
    (tmp_path / "perf.data").write_bytes(magic + b"rest")
    (tmp_path / "kallsyms").write_text("ffffffff81000000 T _text\n")
    written(tmp_path, CHAINS, "script.txt")
    perf(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/asked; cat {tmp_path}/script.txt')
    assert read(str(tmp_path)).samples == 3  # the folder, as perf itself would look for it
    assert read(str(tmp_path / "perf.data")).samples == 3
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("script -f ")
    assert f"--kallsyms {tmp_path}/kallsyms" in asked


def test_a_recording_that_perf_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perf.data").write_bytes(b"PERFILE2rest")
    perf(tmp_path, monkeypatch, "seq 1 9; echo 'incompatible file format'; exit 22")
    with pytest.raises(RequestError, match="perf cannot read this recording") as caught:
        read(str(tmp_path / "perf.data"))
    assert caught.value.details.splitlines() == ["6", "7", "8", "9", "incompatible file format"]


def test_a_recording_without_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perf.data").write_bytes(b"PERFILE2rest")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RequestError, match="needs perf on this machine") as caught:
        read(str(tmp_path / "perf.data"))
    assert "perf" in caught.value.details


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is nothing in it"),
        ("hello\nworld\n", "not a profile in a known format"),
        ("% symbol name\nhello\n", "not a line of opreport"),
        ("  Function  Hit\n  --------  ---\n  nonsense\n", "not a line of ftrace's"),
        ("  Function  Hit\n  --------  ---\n", "no function was called"),
    ],
)
def test_what_is_no_profile(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=said):
        read(written(tmp_path, text))


def test_no_such_place(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no such file"):
        read(str(tmp_path / "absent"))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RequestError, match="cannot be read: Too many levels"):
        read(str(tmp_path / "loop"))
    with pytest.raises(RequestError, match=r"no perf\.data and no function0"):
        read(str(tmp_path))


COUNTED = (
    '{"unit": "instructions", "runs": 3, "user": 5, "functions": '
    '[{"name": "schedule", "instructions": 7.5, "spread": 1}]}'
)


def test_what_the_monitor_counters_left_is_exact(tmp_path: Path) -> None:
    """The file of `counted_functions`, read by `counted_profile`."""
    written(tmp_path, COUNTED, "functions.json")
    written(tmp_path, CHAINS, "perf.script")
    found = read(str(tmp_path))
    assert (found.exact, found.total, found.event) == (True, 12.5, "instructions")
    assert {(symbol.name, symbol.origin): value for symbol, value in found.own.items()} == {
        ("schedule", "kernel"): 7.5,
        ("[user programs]", "user"): 5.0,
    }
    assert {symbol.name: value for symbol, value in found.spreads.items()} == {"schedule": 1}
    written(tmp_path, COUNTED.replace('"user": 5', '"user": 5, "user_spread": 2'), "functions.json")
    assert read(str(tmp_path)).spreads[Symbol("[user programs]", "user")] == 2
    written(tmp_path, COUNTED.replace('"runs": 3', '"runs": 1'), "functions.json")
    assert read(str(tmp_path)).spreads == {}, "one run says nothing of others"
    written(tmp_path, COUNTED.replace('"runs": 3', '"runs": 2'), "functions.json")
    assert len(read(str(tmp_path)).spreads) == 1


def test_calls_misses_and_blocks_are_there_where_they_were_counted(tmp_path: Path) -> None:
    written(tmp_path, COUNTED, "functions.json")
    found = read(str(tmp_path))
    assert (found.calls, found.misses, found.geometry, found.blocks) == ({}, {}, "", "")
    more = COUNTED.replace('"spread": 1', '"spread": 1, "calls": 2, "misses": [3, 4]')
    written(tmp_path, more.replace('"runs"', '"geometry": "a Skylake", "runs"'), "functions.json")
    blocks = written(tmp_path, "", "blocks.json.gz")
    found = read(str(tmp_path))
    schedule = Symbol("schedule", "kernel")
    assert (found.calls, found.misses) == ({schedule: 2}, {schedule: (3, 4)})
    assert (found.geometry, found.blocks) == ("a Skylake", blocks)


PATHS = COUNTED.replace(
    "]}",
    '], "paths": [[0, "entry", 1, 0], [1, "schedule", 4, 2], [2, "pick", 0.5, 2], [0, "irq", 2, 1], '
    '[4, "schedule", 3.5, 1]]}',
)


def test_paths_of_calls_are_stacks(tmp_path: Path) -> None:
    written(tmp_path, PATHS, "functions.json")
    found = read(str(tmp_path))
    assert {";".join(s.name for s in stack): weight for stack, weight in found.stacks.items()} == {
        "entry": 1,
        "entry;schedule": 4,
        "entry;schedule;pick": 0.5,
        "irq": 2,
        "irq;schedule": 3.5,
        "[user programs]": 5,
    }
    assert found.whole[Symbol("schedule", "kernel")] == 8
    assert found.callers["schedule", "irq"] == 3.5
    assert found.callers["irq", "[an entry of the kernel]"] == 2
    assert found.no_stacks == ""


def test_paths_of_one_name_are_one_stack_and_without_instructions_none(tmp_path: Path) -> None:
    paths = '"paths": [[0, "entry", 0, 1], [1, "pick", 2, 1], [1, "pick", 3, 1]]}'
    written(
        tmp_path, COUNTED.replace("]}", f"], {paths}").replace('"user": 5', '"user": 0'), "functions.json"
    )
    found = read(str(tmp_path))
    assert {";".join(s.name for s in stack): weight for stack, weight in found.stacks.items()} == {
        "entry;pick": 5
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('[4, "schedule"', '[5, "schedule"', r"path 5 of functions\.json is called from path 5"),
        ('[4, "schedule"', '[-1, "schedule"', "'paths.4.0': must be at least 0"),
        ('"irq", 2', '"irq", -2', "'paths.3.2': must be at least 0"),
    ],
)
def test_damaged_paths_are_refused_with_the_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    written(tmp_path, PATHS.replace(old, new), "functions.json")
    with pytest.raises(RequestError, match=said):
        read(str(tmp_path))


PROGRAMS = PATHS.replace(
    "]}",
    '], "programs": [{"name": "pipe:main", "instructions": 3, "spread": 1, "calls": 2}, '
    '{"name": "[other user code]", "instructions": 2, "spread": 0}]}',
)


def test_functions_of_programs_stand_for_all_user_code(tmp_path: Path) -> None:
    written(tmp_path, PROGRAMS, "functions.json")
    found = read(str(tmp_path))
    main, rest = Symbol("pipe:main", "user"), Symbol("[other user code]", "user")
    assert found.total == 12.5
    assert {symbol: value for symbol, value in found.own.items() if symbol.origin == "user"} == {
        main: 3,
        rest: 2,
    }
    assert (found.spreads[main], found.calls[main]) == (1, 2)
    known = PROGRAMS.replace('"user": 5', '"user": 5, "user_spread": 2')
    written(
        tmp_path, known.replace("]}", ', {"name": "a:b", "instructions": 0, "spread": 0}]}'), "functions.json"
    )
    assert {symbol.name for symbol in read(str(tmp_path)).spreads} == {
        *("schedule", "pipe:main", "[other user code]", "a:b")
    }
    whole = Symbol("[user programs]", "user")
    assert {stack: weight for stack, weight in found.stacks.items() if whole in stack} == {
        (whole, main): 3,
        (whole, rest): 2,
    }
    assert found.whole[whole] == 5
    few = '{"name": "[user programs]", "instructions": 5, "spread": 0}'
    written(tmp_path, PATHS.replace("]}", f'], "programs": [{few}]}}'), "functions.json")
    assert read(str(tmp_path)).stacks[(whole,)] == read(str(tmp_path)).own[whole] == 5


def test_why_there_are_no_paths_is_known(tmp_path: Path) -> None:
    written(tmp_path, COUNTED, "functions.json")
    assert "earlier version" in read(str(tmp_path)).no_stacks
    written(tmp_path, COUNTED.replace("]}", '], "no_paths": "arm64"}'), "functions.json")
    assert read(str(tmp_path)).no_stacks == "arm64"


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('"runs": 3', '"runs": 0', "'runs'"),
        ("7.5", "-1", "'functions.0.instructions'"),
        ("7.5", "1e999", "instructions"),
        ('"schedule"', '""', "'functions.0.name'"),
        ('"spread": 1', '"spread": 1, "x": 1', "'functions.0.x'"),
        ("]}", "", "functions.json"),
    ],
)
def test_damaged_counts_are_refused_with_the_place(tmp_path: Path, old: str, new: str, where: str) -> None:
    written(tmp_path, COUNTED.replace(old, new), "functions.json")
    with pytest.raises(RequestError) as refused:
        read(str(tmp_path))
    assert where in str(refused.value)
