"""Whose fault a failed build is. The lines are what GNU make, gcc, ld, kconfig and tuxmake really print."""

from __future__ import annotations

import pytest

from bisector.adapters.build.log import excerpt, judge, without_folder

ENDED = "the build was ended by a signal, from the system or another process"

COMPILE = (
    "  CC      kernel/work.o\n"
    "kernel/work.c: In function 'work':\n"
    "kernel/work.c:1:26: error: 'y' undeclared (first use in this function)\n"
    "    1 | int work(int x) { return y; }\n"
    "make[1]: *** [scripts/Makefile.build:250: kernel/work.o] Error 1\n"
)


@pytest.mark.parametrize(
    ("log", "blame", "what"),
    [
        (COMPILE, "kernel", "it does not compile"),
        ("foo.S:3: Error: no such instruction: `frob'\n", "kernel", "it does not compile"),
        ("main.c:(.text+0x1): undefined reference to `work'\n", "kernel", "it does not link"),
        ("make: *** No rule to make target 'bzImage'.  Stop.\n", "kernel", "its makefiles are broken"),
        ("Makefile:442: *** mixed implicit and normal rules.  Stop.\n", "kernel", "its makefiles are broken"),
        ("init/Kconfig:5: syntax error\n", "kernel", "its configuration is broken"),
        ("E: expected artifact /x/bzImage does not exist!\n", "kernel", "a step of its build fails"),
        ("foo.c: internal compiler error: in expand_expr\n", "kernel", "the compiler breaks on it"),
        ("", "kernel", "its build fails"),
        (COMPILE + "as: /tmp/x.o: No space left on device\n", "infrastructure", "the disk is full"),
        (
            "gcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.\n" + COMPILE,
            "infrastructure",
            "a compiler was killed or ran out of memory",
        ),
        ("cc1: out of memory allocating 65536 bytes\n", "infrastructure", "out of memory"),
        ("/bin/sh: 1: flex: not found\n", "infrastructure", "a tool is missing"),
        ("/bin/sh: line 1: bison: command not found\n", "infrastructure", "a tool is missing"),
        ("make[2]: bison: No such file or directory\n", "infrastructure", "a tool is missing"),
        ("fatal error: gelf.h: No such file\n", "infrastructure", "a library to build with is missing"),
        ("make[1]: *** [Makefile:1: x.o] Terminated\n", "infrastructure", ENDED),
    ],
)  # fmt: skip
def test_blame(log: str, blame: str, what: str) -> None:
    failure = judge(log)
    assert (failure.blame, failure.what) == (blame, what)


def test_a_missing_header_of_the_kernel_is_the_kernels_fault() -> None:
    log = (
        "init/main.c:1:10: fatal error: linux/nothing.h: No such file or directory\ncompilation terminated.\n"
    )
    assert judge(log).blame == "kernel"


def test_what_the_linker_only_warns_of_is_not_told() -> None:
    log = (
        "ld: warning: arch/x86_64/kernel/trampoline.o: missing .note.GNU-stack section\n"
        "ld: NOTE: This behaviour is deprecated\n  CC      mm/bootmem.o\n"
        "ld: entry.o:(.text+0x23a5): undefined reference to `pda_kernelstack'\n"
    )
    failure = judge(log)
    assert (failure.blame, failure.what) == ("kernel", "it does not link")
    assert "pda_kernelstack" in failure.line


def test_what_is_missing_is_told_rather_than_that_nothing_was_made() -> None:
    log = "bash: line 1: tuxmake: command not found\nperfbisect: make was ended without an error (code 127)\n"
    assert judge(log).what == TOOL


def test_the_first_error_is_shown_with_what_follows() -> None:
    failure = judge(COMPILE)
    assert failure.line.startswith("kernel/work.c:1:26: error:")
    assert excerpt(COMPILE, failure.line, after=1).splitlines()[1].strip().startswith("1 | int work")


@pytest.mark.parametrize(
    ("line", "short"),
    [
        ("/home/me/.cache/perfbisect/builder/source/mm/slab.c:7:2: error: x", "mm/slab.c:7:2: error: x"),
        ("../../builder/source/fs/aio.c:1:1: error: y", "fs/aio.c:1:1: error: y"),
        ("/linux/mm/slab.c:7:2: error: x in '/linux/mm/a.h'", "mm/slab.c:7:2: error: x in 'mm/a.h'"),
        ("include/linux/fs.h:1:1: error: y", "include/linux/fs.h:1:1: error: y"),
        ("ld: mm/slab.o: undefined reference to `z'", "ld: mm/slab.o: undefined reference to `z'"),
    ],
)
def test_paths_are_told_as_they_are_in_the_tree(line: str, short: str) -> None:
    assert without_folder(line) == short


def test_a_linkers_warning_is_not_why_it_failed() -> None:
    log = (
        "ld: .tmp_vmlinux1:(*ABS*+0x8): warning: multiple definition of `jiffies_64'; b.o: first there\n"
        "ld: warning: .tmp_vmlinux1 has a LOAD segment with RWX permissions\n"
        "ld: drivers/built-in.o: in function `store_uevent':\n"
        "core.c:(.text+0x3af4f): undefined reference to `kobject_actions'\n"
    )
    assert judge(log).line == "core.c:(.text+0x3af4f): undefined reference to `kobject_actions'"
    assert judge("ld: a.o: multiple definition of `x'\n").what == "it does not link"
    assert judge("ld: warning: y\nld: cannot find -lz\n").line == "ld: cannot find -lz"


SIGNALS = ("Killed", "Terminated", "Bus error", "Hangup")
REFUSED = "the system refuses more processes or files"
DISK, COMPILER, MEMORY = "the disk fails", "a compiler was killed or ran out of memory", "out of memory"
TOOL, LIBRARY = "a tool is missing", "a library to build with is missing"

MACHINE = [
    ("ccache: fatal: write error: Disk quota exceeded", "the disk is full"),
    ("as: x.o: No space left on device", "the disk is full"),
    ("ld: final link failed: Input/output error", DISK),
    ("rm: cannot remove 'x.o': Read-only file system", DISK),
    ("gcc: fatal error: Killed signal terminated program cc1", COMPILER),
    ("virtual memory exhausted: Cannot allocate memory", COMPILER),
    ("cc1: out of memory allocating 65536 bytes", MEMORY),
    ("make: fork: Cannot allocate memory", MEMORY),
    ("ld: memory exhausted", MEMORY),
    *((f"make[1]: *** [Makefile:1: x.o] {word}", ENDED) for word in ("Killed", "Terminated", "Hangup")),
    ("make[1]: *** [Makefile:1: x.o] Interrupt", ENDED),
    *((f"make: *** [Makefile:1: x.o] Error {code}", ENDED) for code in (129, 130, 137, 143)),
    ("perfbisect: make was ended without an error (code 137)", ENDED),
    ("tuxmake: received signal 15; terminating", ENDED),
    ("/bin/sh: 1: flex: not found", TOOL),
    ("1: bison: not found", TOOL),
    ("/bin/sh: line 1: x86_64-linux-gnu-gcc: command not found", TOOL),
    ("make: bc: No such file or directory", TOOL),
    ("make[2]: /usr/bin/perl: No such file or directory", TOOL),
    ("fatal error: gelf.h: No such file or directory", LIBRARY),
    ("fatal error: libelf.h: No such file or directory", LIBRARY),
    ("fatal error: openssl/bio.h: No such file or directory", LIBRARY),
    ("fatal error: zlib.h: No such file or directory", LIBRARY),
    ("E: compiler gcc-4.9 not found", "the compiler is missing"),
    ("tuxmake.exceptions.CompilerNotFound: gcc", "the compiler is missing"),
    ("ccache: error: Failed to create directory", "ccache fails"),
    ("cc1: error: x.o: Stale file handle", DISK),
    ("cp: x.o: Stale NFS file handle", DISK),
    ("ar: x.a: Structure needs cleaning", DISK),
    *((f"gcc: fatal error: {word} signal terminated program cc1", COMPILER) for word in SIGNALS),
    *((f"gcc: internal compiler error: {word} (program cc1)", COMPILER) for word in SIGNALS[:3]),
    *((f"clang: error: unable to execute command: {word}", COMPILER) for word in SIGNALS[:3]),
    *((f"collect2: fatal error: ld terminated with signal {number}", COMPILER) for number in (1, 7, 9, 15)),
    ("process didn't exit successfully: `rustc` (signal: 9, SIGKILL: kill)", COMPILER),
    ("The bug is not reproducible, so it is likely a hardware or OS problem.", "a compiler fails by chance"),
    ("ld: final link failed: Memory exhausted", MEMORY),
    ("terminate called after throwing an instance of 'std::bad_alloc'", MEMORY),
    ("LLVM ERROR: out of memory", MEMORY),
    ("make: /bin/sh: Resource temporarily unavailable", REFUSED),
    ("gcc: fatal error: cannot execute 'as': vfork: Resource temporarily unavailable", REFUSED),
    ("/bin/sh: 1: Cannot fork", REFUSED),
    ("ld: cannot find x.o: Too many open files", REFUSED),
    ("/bin/sh: bc: command not found", TOOL),
    ("/bin/sh: 1: /usr/bin/flex: not found", TOOL),
    ("env: 'python3': No such file or directory", TOOL),
    ("/usr/bin/env: /usr/bin/python2: No such file or directory", TOOL),
    *((f"fatal error: {name}.h: No such file or directory", LIBRARY) for name in ("gmp", "mpc", "mpfr")),
]
KERNEL = [
    ("foo.c:1: internal compiler error: Segmentation fault", "the compiler breaks on it"),
    ("foo.c:1:2: error: 'y' undeclared", "it does not compile"),
    ("foo.c:1:2: fatal error: linux/no.h: No such file or directory", "it does not compile"),
    ("foo.S:3: Error: no such instruction", "it does not compile"),
    ("foo.c: undefined reference to `work'", "it does not link"),
    ("modpost: undefined symbol `work'", "it does not link"),
    ("b.o: multiple definition of `x'; a.o: first defined here", "it does not link"),
    ("ld: cannot find -lz", "it does not link"),
    ("ld.lld: unknown file type", "it does not link"),
    ("init/Kconfig:5: syntax error", "its configuration is broken"),
    ("init/Kconfig:5:error: recursive dependency detected!", "its configuration is broken"),
    ('init/Kconfig:5: unknown statement "depend"', "its configuration is broken"),
    ("make: No rule to make target 'bzImage'", "its makefiles are broken"),
    ("Makefile:4: *** mixed implicit and normal rules.  Stop.", "its makefiles are broken"),
    ("Makefile:4: *** multiple target patterns.", "its makefiles are broken"),
    ("Makefile:4: *** missing separator.", "its makefiles are broken"),
    ("make: *** [Makefile:1: vmlinux] Error 2", "a step of its build fails"),
    ("E: expected artifact /x/bzImage does not exist!", "a step of its build fails"),
    ("collect2: fatal error: ld terminated with signal 11 [Segmentation fault]", "it does not compile"),
]


@pytest.mark.parametrize(("line", "what"), MACHINE)
def test_each_sign_of_a_machine_at_fault_wins_over_all_errors_of_the_compiler(line: str, what: str) -> None:
    failure = judge(f"{COMPILE}{line}\n{COMPILE}")
    assert (failure.blame, failure.what, failure.line) == ("infrastructure", what, line)


@pytest.mark.parametrize(("line", "what"), KERNEL)
def test_each_sign_of_a_broken_commit(line: str, what: str) -> None:
    failure = judge(f"  CC      foo.o\n{line}\nmake: Leaving directory '/x'\n")
    assert (failure.blame, failure.what, failure.line) == ("kernel", what, line)


def test_what_only_says_that_a_step_failed_leaves_the_commit_in_doubt() -> None:
    doubtful = {"the compiler breaks on it", "a step of its build fails"}
    for line, what in KERNEL:
        assert judge(f"{line}\n").certain == (what not in doubtful and not line.startswith("ld")), line
    for log in ("", "the build ended without an answer (code 137)\n", "make: *** [a.o] Error 139\n"):
        assert (judge(log).blame, judge(log).certain) == ("kernel", False)


@pytest.mark.parametrize(
    "path",
    ["./scripts/link.sh", "scripts/link.sh", "/linux/scripts/link.sh", "/home/me/builder/source/link.sh"],
)
def test_a_tool_that_is_missing_in_the_tree_is_the_commit_s(path: str) -> None:
    for line in (
        f"/bin/sh: 1: {path}: not found",
        f"make: {path}: No such file or directory",
        f"env: '{path}': No such file or directory",
        f"/bin/sh: {path}: command not found",
    ):
        assert judge(f"{line}\nmake: *** [vmlinux] Error 127\n").blame == "kernel", line


@pytest.mark.parametrize(
    "shown",
    [
        '    4 |  DRM_ERROR("Cannot allocate memory for page table array");\n      |  ^~~~\n',
        '      | #define FULL "No space left on device"\n',
        '  pr_err("Cannot allocate memory");\n  ^\n',  # before gcc 9
        "  /* Too many open files */ fail();\n  ~~~~^~\n",
    ],
)
def test_source_that_a_compiler_shows_says_nothing_of_the_machine(shown: str) -> None:
    log = f"a.c:4:1: error: x\n{shown}make: *** [a.o] Error 1\n"
    assert (judge(log).blame, judge(log).line) == ("kernel", "a.c:4:1: error: x")


def test_a_line_that_only_begins_like_a_pointer_shows_no_source() -> None:
    """A terminal shows Ctrl-C as '^C' before whatever comes next."""
    log = "cc1: out of memory allocating 65536 bytes\n^Cmake[1]: *** [Makefile:1: x.o] Error 1\n"
    assert (judge(log).blame, judge(log).what) == ("infrastructure", MEMORY)


@pytest.mark.parametrize(
    "line",
    [
        "  CC      mm/out-of-memory.o",
        "  note: strerror: used",
        "  note: no-error: used",
        "  LD      fs/not-found.o",
        "scripts/Makefile.build:4: warning: overriding recipe",
        "ld: warning: orphan section",
        "ld: NOTE: This behaviour is deprecated",
        "b.o: warning: multiple definition of `x'",
        "process didn't exit successfully: `rustc` (signal: 11, SIGSEGV: invalid memory reference)",
    ],
)
def test_what_is_no_sign_leaves_the_last_line_and_the_commit_at_fault(line: str) -> None:
    failure = judge(f"{line}\nthe last line\n\n")
    assert (failure.blame, failure.what, failure.line) == ("kernel", "its build fails", "the last line")


def test_the_more_telling_sign_is_named_and_of_one_kind_the_first_line() -> None:
    first, second = "a.c:1: error: one", "b.c:1: error: two"
    assert judge(f"make: *** [Makefile:1: a.o] Error 1\n{first}\n{second}\n").line == first
    assert judge(f"{first}\nb.c: internal compiler error: x\n").what == "the compiler breaks on it"


def test_a_line_that_is_not_in_the_log_is_its_own_excerpt() -> None:
    assert excerpt("a\nb\n", "c") == "c"
    assert excerpt("a\n  b\nc\nd\n", "b", after=1) == "  b\nc"


def test_lines_made_to_be_slow_are_not() -> None:
    for line in ("1" * 500_000, "a/" * 200_000, "../" * 200_000, ": 1" * 200_000):
        failure = judge(line + "\nmm/slab.c:7:2: error: x\n")
        assert failure.line == "mm/slab.c:7:2: error: x"
        assert without_folder(excerpt(line, line[:2000]))
        assert len(judge(line).line) <= 2000, "no error shows a line of a megabyte"
