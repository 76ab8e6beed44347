"""Samples as perf script prints them: whose code a frame is, which event is shown, what is left out."""

from __future__ import annotations

import pytest

from bisector.adapters.parsers.profiles.perf_script import looks_like, origin_of, read
from bisector.errors import RequestError
from bisector.linux.profile import Symbol


@pytest.mark.parametrize(
    ("binary", "origin"),
    [
        ("[kernel.kallsyms]", "kernel"),
        ("[guest.kernel.kallsyms]", "kernel"),
        ("[ext4]", "kernel"),
        ("/usr/lib/debug/boot/vmlinux-6.1", "kernel"),
        ("/lib/modules/6.1/kernel/fs/ext4/ext4.ko", "kernel"),
        ("/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz", "kernel"),
        ("[vdso]", "user"),
        ("[unknown]", "user"),
        ("/usr/bin/a.kok", "user"),
        ("/usr/lib/libc.so.6", "user"),
    ],
)
def test_modules_are_the_kernels_and_the_vdso_is_a_programs(binary: str, origin: str) -> None:
    assert origin_of(binary) == origin


def test_of_several_events_the_one_with_most_samples_is_shown() -> None:
    found = read(
        "a 1 900 faults:u: 1 first (/bin/a)\n"
        "a 1 5 cycles:ppp: 1 main (/bin/a)\na 1 7 cycles:ppp: 2 run (/bin/a)\n",
        "x",
    )
    assert (found.event, found.samples, found.total) == ("cycles", 2, 12)
    assert found.notes == ("of 2 events cycles:ppp is shown, which has most samples",)


def test_samples_without_a_symbol_are_left_out_and_counted() -> None:
    found = read("# a comment\n\na 1 5 cycles:\n\t 1 main (/bin/a)\n\na 1 7 cycles:\n\n", "x")
    assert (found.samples, found.total) == (1, 5)
    assert found.notes == ("1 samples without any symbol are left out",)
    with pytest.raises(RequestError, match="no sample in it has a symbol and a weight"):
        read("a 1 7 cycles:\n\n", "x")
    with pytest.raises(RequestError, match="there is no sample in it"):
        read("hello\n", "x")


def test_a_sample_without_a_period_counts_once() -> None:
    assert read("a 1 cycles:  1 main (/bin/a)\na 1 cycles:  1 main (/bin/a)\n", "x").total == 2


def test_two_frames_are_a_chain_and_unknown_callers_say_nothing() -> None:
    found = read("a 1 1 cycles:\n\t 1 run (/bin/a)\n\t 2 main (/bin/a)\n\t 3 [unknown] (/bin/a)\n", "x")
    assert [[one.name for one in stack] for stack in found.stacks] == [["a", "main", "run"]]
    assert read("a 1 1 cycles:\n\t 1 [unknown] (/bin/a)\n", "x").own == {Symbol("[unknown]", "user"): 1}


@pytest.mark.parametrize("task", ["kworker/1:2-ev", "ksoftirqd/1", "migration/12", "cpuhp/3", "rcuop/0"])
def test_the_kernels_threads_of_all_cpus_are_one_task(task: str) -> None:
    found = read(f"{task} 1 1 cycles:\n\t 1 run ([k])\n\t 2 main ([k])\n", "x")
    assert [stack[0].name for stack in found.stacks] == [task.partition("/")[0]]


def test_what_perf_says_before_the_first_sample_is_skipped() -> None:
    text = "# hostname : box\n#\na 1 cycles:  1 main (/bin/a)\n"
    assert looks_like(text) and not looks_like("# a\n") and not looks_like("a 1 cycles:\nhello\n")


@pytest.mark.parametrize("command", ["dd", "cc1", "ab"])
def test_a_command_that_looks_like_an_address_is_no_frame(command: str) -> None:
    """All samples but the first were taken for its call chain."""
    head = f"{command}  7150    5000000 cpu-clock: "
    text = f"{head}ffffffff8106 copy_page+0x6 ([kernel.kallsyms])\n{head}    55e3faada18b main (/bin/x)\n"
    found = read(text, "x")
    assert (found.samples, found.whole) == (2, {})
    assert {symbol.name: weight for symbol, weight in found.own.items()} == {"copy_page": 5e6, "main": 5e6}


@pytest.mark.parametrize(
    ("frame", "symbol"),
    [
        ("Call<int (char)>::run (/bin/a)", Symbol("Call<int (char)>::run", "user")),
        ("Call<int (char)>::run(char)+0x3 (/bin/a)", Symbol("Call<int (char)>::run(char)", "user")),
        ("(anonymous namespace)::run (//anon)", Symbol("(anonymous namespace)::run", "user")),
        ("operator new (/srv/new (copy)/a)", Symbol("operator new", "user")),
        ("run+0x1f (/bin/a (deleted))", Symbol("run", "user")),
        ("run (memfd:jit (deleted))", Symbol("run", "user")),
        ("Call<void (int)>::run (perf-12.map)", Symbol("Call<void (int)>::run", "user")),
        ("ext4_read+0x3 ([ext4])", Symbol("ext4_read", "kernel")),
    ],
)
def test_names_of_functions_and_of_binaries_may_have_brackets(frame: str, symbol: Symbol) -> None:
    assert read(f"a  5436  5 cycles:\n\t  1136 {frame}\n", "x").own == {symbol: 5}


def test_a_function_that_was_inlined_is_the_kernels_where_the_one_around_it_is() -> None:
    text = (
        "a  5436  5 cycles:\n\t 1136 __read_once (inlined)\n\t 1136 wait_on (inlined)\n"
        "\t 1136 schedule ([kernel.kallsyms])\n\t 12 min (inlined)\n\t 12 main (/bin/a)\n"
    )
    assert {symbol.name: symbol.origin for symbol in read(text, "x").whole} == {
        **dict.fromkeys(("__read_once", "wait_on", "schedule"), "kernel"),
        **dict.fromkeys(("min", "main"), "user"),
    }
