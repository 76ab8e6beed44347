"""Edits of old trees: made once, the same when made again, refused when they no longer apply."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.adapters.git.repository import Repository
from bisector.adapters.git.trees import KernelTrees
from bisector.errors import RequestError, SourceFailed
from bisector.schemas.kernel.fixup import Fixup, apply_fixups, fixups_at, load_fixups
from bisector.schemas.kernel.release import Release
from tests.support.toy_kernel import ToyHistory

# What each shipped row was written for: the text as it stood in a release, and what it becomes.
TEXTS = {
    "make-mixed-rules": (
        "Makefile",
        "config %config: scripts_basic FORCE\n/ %/: prepare\n",
        "%config: scripts_basic FORCE\n%/: prepare\n",
    ),
    "timeconst-defined-array": ("kernel/timeconst.pl", "\tif (!defined(@val)) {\n", "\tif (!@val) {\n"),
    "noinline-used": (
        "include/linux/compiler-gcc.h",
        "#define  noinline\t\t\t__attribute__((noinline))\n",
        "#define  noinline\t\t\t__attribute__((noinline, __used__))\n",
    ),
    "acpi-initdata-prototype": (
        "include/acpi/acpiosxf.h",
        "acpi_status __initdata acpi_os_initialize(void);\n",
        "acpi_status acpi_os_initialize(void);\n",
    ),
    "objtool-warnings": (
        "tools/objtool/Makefile",
        "CFLAGS   := -Werror $(WARNINGS)\nCFLAGS   += -Wall -Werror $(EXTRA_WARNINGS)\n  CFLAGS += -Werror\n",
        "CFLAGS   := -w $(WARNINGS)\nCFLAGS   += -Wall -w $(EXTRA_WARNINGS)\n  CFLAGS += -w\n",
    ),
    "objtool-no-symbols": (
        "tools/objtool/elf.c",
        '\tif (!symtab) {\n\t\tWARN("missing symbol table");\n\t\treturn -1;\n\t}\n',
        '\tif (!symtab) {\n\t\tWARN("missing symbol table");\n\t\treturn 0;\n\t}\n',
    ),
    "boot-header-die-end": (
        "arch/i386/boot/header.S",
        "die:\n\thlt\n\tjmp\tdie\n\n\t.size\tdie, .-due\n",
        "die:\n\thlt\n\tjmp\tdie\n\n\t.size\tdie, .-die\n",
    ),
    "boot-e820-eax": (
        "arch/i386/boot/memory.c",
        '\t\t    : "=am" (err), "+b" (next), "+d" (id), "+c" (size),\n',
        '\t\t    : "=a" (err), "+b" (next), "+d" (id), "+c" (size),\n',
    ),
    "serial-ports-in-order": (
        "arch/i386/kernel/legacy_serial.c",
        "\tif (pnp_platform_devices && !force_legacy_probe)\n\t\treturn -ENODEV;\n",
        "\tif (pnp_platform_devices && 0)\n\t\treturn -ENODEV;\n",
    ),
    "early-faults-jump": (
        "arch/x86/kernel/head_64.S",
        "\tpushq $i\n\tjmp early_idt_handler\n\ti = i + 1\n",
        "\tpushq $i\n\t.byte 0xe9\n\t.long early_idt_handler - . - 4\n\ti = i + 1\n",
    ),
    "copy-user-string-end": (
        "arch/x86/lib/copy_user_64.S",
        "END(copy_user_generic_c)\n",
        "END(copy_user_generic_string)\n",
    ),
    "make-hash-escape": (
        "scripts/Kbuild.include",
        r"make-cmd = $(subst \#,\\\#,$(subst $$,$$$$,$(call escsq,$(cmd_$(1)))))" + "\n",
        "pound := \\#\nmake-cmd = $(subst $(pound),$$(pound),$(subst $$,$$$$,$(call escsq,$(cmd_$(1)))))\n",
    ),
    "initramfs-time": (
        "usr/gen_init_cpio.c",
        "\ttime_t mtime = time(NULL);\n",
        "\ttime_t mtime = 1767225600;\n",
    ),
    "build-date": (
        "scripts/mkcompile_h",
        'UTS_VERSION="$UTS_VERSION $CONFIG_FLAGS `LC_ALL=C LANG=C date`"\n',
        'UTS_VERSION="$UTS_VERSION $CONFIG_FLAGS $KBUILD_BUILD_TIMESTAMP"\n',
    ),
    "build-time": ("scripts/mkcompile_h", '\\"`date +%T`\\"\n', '\\"00:00:00\\"\n'),
    "build-user": ("scripts/mkcompile_h", '\\"`whoami`\\"\n', '\\"perfbisect\\"\n'),
    "build-host": ("scripts/mkcompile_h", '\\"`hostname | $UTS_TRUNCATE`\\"\n', '\\"perfbisect\\"\n'),
    "build-domain": (
        "scripts/mkcompile_h",
        "if [ -x /bin/dnsdomainname ]; then\n",
        "if [ -x /nowhere ]; then\n",
    ),
    "build-domain-command": (
        "scripts/mkcompile_h",
        "  domain=`dnsdomainname 2> /dev/null`\n    domain=`domainname 2> /dev/null`\n",
        "  domain=''\n    domain=''\n",
    ),
}


def test_every_shipped_row_says_why_and_is_tested_here() -> None:
    rows = load_fixups()
    assert all(row.why and (row.since or row.before) for row in rows), (
        "a row is for some releases, with a reason"
    )
    assert {row.name for row in rows} == set(TEXTS)


@pytest.mark.parametrize("row", load_fixups(), ids=lambda row: row.name)
def test_a_shipped_row_does_what_it_is_for_and_no_more_the_second_time(row: Fixup) -> None:
    path, before, after = TEXTS[row.name]
    assert path in row.files
    assert apply_fixups([row], path, before, "x") == after
    assert apply_fixups([row], path, after, "x") == after, "a row that must apply finds its work done"


@given(st.text(alphabet="ab(){}\n", max_size=60))
def test_an_edit_made_twice_is_the_edit_made_once_or_refused(text: str) -> None:
    rows = [
        Fixup(name="plain", files=("f",), pattern="a+b", replacement="(b)", why="w"),
        Fixup(name="grows", files=("f",), pattern="b", replacement="bb", why="w"),
    ]
    for row in rows:
        try:
            once = row.edit(text)
        except SourceFailed as error:
            assert "changes its own result" in error.message
            assert "b" in text
        else:
            assert row.edit(once) == once


def test_a_row_that_no_longer_applies_is_named_with_its_reason() -> None:
    row = Fixup(
        name="gone", files=("Makefile",), pattern="^old$", replacement="new", need="must", why="it was there"
    )
    assert apply_fixups([row], "Makefile", "old\n", "v3.0") == "new\n"
    assert apply_fixups([row], "Makefile", "x new y\n", "v3.0") == "x new y\n"
    with pytest.raises(SourceFailed, match=r"the fixup 'gone' no longer applies to v3\.0") as error:
        apply_fixups([row], "Makefile", "other\n", "v3.0")
    assert "because: it was there" in error.value.details
    assert "fixups.toml" in error.value.cure


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("pattern = '('", "is not a regular expression"),
        ("pattern = 'a'\nsince = '2.6'", "'2.6' is not a release"),
        ("pattern = 'a'\nneeds = 'must'", "unknown key 'fixup.0.needs'; did you mean 'need'"),
    ],
)
def test_a_wrong_row_is_refused_with_file_and_key(tmp_path: Path, field: str, words: str) -> None:
    row = f"[[fixup]]\nname = 'x'\nfiles = ['a']\nreplacement = 'b'\nwhy = 'w'\n{field}\n"
    (tmp_path / "fixups.toml").write_text(row)
    with pytest.raises(RequestError) as error:
        load_fixups(tmp_path)
    assert words in error.value.message
    assert "fixups.toml" in error.value.message


def test_rows_are_chosen_by_age() -> None:
    names = {row.name for row in fixups_at(load_fixups(), Release.parse("v2.6.30"))}
    assert "make-mixed-rules" not in names
    assert {"timeconst-defined-array", "acpi-initdata-prototype", "noinline-used"} <= names
    assert fixups_at(load_fixups(), Release.parse("v6.1")) == ()


def test_trees_are_edited_as_objects_and_bytes_of_any_encoding_survive(tmp_path: Path) -> None:
    history = ToyHistory.create(tmp_path / "repo")
    (history.path / "kernel" / "work.c").write_bytes(b"/* M\xfcller */\nint work(int x) { return x * 3; }\n")
    (history.path / "scripts" / "conf").chmod(0o755)
    sha = history.commit({}, "latin-1")
    before = {p: p.read_bytes() for p in history.path.rglob("*") if p.is_file()}
    trees = KernelTrees(history.path, tmp_path / "own.git")
    row = Fixup(
        name="x", files=("kernel/work.c", "no/such/file"), pattern=r"x \* 3", replacement="x * 5", why="w"
    )
    tree = trees.tree(sha)
    fixed = trees.fixed(tree, [row], "HEAD")
    assert fixed != tree
    assert trees.fixed(fixed, [row], "HEAD") == fixed, "a second time changes nothing"
    assert trees.fixed(tree, [], "HEAD") == tree
    own = Repository(trees.own)
    done = own.run("diff", "--stat", tree, fixed)
    assert "kernel/work.c" in done.output
    assert "1 file changed" in done.output
    raw = tmp_path / "raw"
    raw.mkdir()
    env = {"GIT_DIR": str(trees.own), "GIT_INDEX_FILE": str(tmp_path / "i"), "GIT_WORK_TREE": str(raw)}
    own.run("read-tree", fixed, env=env)
    Repository(raw).run("checkout-index", "--all", env=env)
    assert (raw / "kernel" / "work.c").read_bytes() == b"/* M\xfcller */\nint work(int x) { return x * 5; }\n"
    assert (raw / "scripts" / "conf").stat().st_mode & 0o111, "modes stay"
    assert {p: p.read_bytes() for p in history.path.rglob("*") if p.is_file()} == before
