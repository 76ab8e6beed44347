"""Builds through Ansible, tuxmake, ccache and gcc, of a toy kernel tree: the same path that Linux takes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisector.engine.build_queue import BuildQueue
from bisector.errors import BuildFailed, InfrastructureError, RequestError, SourceFailed
from tests.support.small_disk import mounted
from tests.support.toy_kernel import MAKEFILE, BuildLab, ToyHistory, tools_missing
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> BuildLab:
    return BuildLab(tmp_path_factory.mktemp("builds"))


def test_a_build_gives_a_whole_kernel_and_is_not_repeated(lab: BuildLab) -> None:
    builder = lab.builder()
    assert builder.cached(lab.order(lab.base)) is None
    kernel = builder.build(lab.order(lab.base), lab.progress.append)
    assert not kernel.cached
    assert kernel.image.read_bytes()[:4] == b"\x7fELF"
    assert bytes.fromhex(kernel.build_id) in kernel.image.read_bytes()
    assert kernel.release == "6.1.0-toy"
    assert kernel.options == {"TOY": "y", "SPEED": "y"}
    assert kernel.sizes["text"] > 0
    assert "CC      kernel/work.o" in kernel.log.read_text()
    assert kernel.toolchain.startswith("gcc")
    assert kernel.compiler == "gcc"
    assert "building" in lab.progress
    again = lab.builder().build(lab.order(lab.base), lab.progress.append)
    assert again.cached
    assert (again.key, again.binary, again.image) == (kernel.key, kernel.binary, kernel.image)
    known = lab.builder().cached(lab.order(lab.base))
    assert known is not None
    assert known.key == kernel.key


def test_commits_with_the_same_code_have_the_same_binary(lab: BuildLab) -> None:
    other = lab.change({"Documentation/toy.rst": "More.\n"}, "words only")
    faster = lab.change({"kernel/work.c": "int work(int x) { return x; }\n"}, "code")
    builder = lab.builder()
    base, same, different = (
        builder.build(lab.order(c), lab.progress.append) for c in (lab.base, other, faster)
    )
    assert (same.binary, same.build_id) == (base.binary, base.build_id)
    assert same.key != base.key
    assert different.binary != base.binary
    assert different.build_id != base.build_id


def test_a_kernel_that_holds_the_path_of_its_sources_is_the_same_from_all_builders(lab: BuildLab) -> None:
    files = {
        "Makefile": MAKEFILE.replace("-o $@ $<", "-o $@ $(srctree)/$<"),
        "kernel/work.c": "const char *where = __FILE__; int work(int x) { return x; }\n",
    }
    old = lab.change(files, "as old trees do")
    here = lab.builder().build(lab.order(old), lab.progress.append)
    far = lab.builder("far", lab.root / "a longer name").build(lab.order(old), lab.progress.append)
    assert b"/kernel/work.c\0" in here.image.read_bytes()
    assert not far.cached
    assert far.image.read_bytes() == here.image.read_bytes()


def test_a_layout_is_another_kernel_of_the_same_code(lab: BuildLab) -> None:
    builder = lab.builder()
    plain = builder.build(lab.order(lab.base), lab.progress.append)
    moved = builder.build(lab.order(lab.base, layout=1), lab.progress.append)
    assert moved.key != plain.key
    assert "-falign-functions=64" in moved.log.read_text() or moved.binary != plain.binary
    with pytest.raises(RequestError, match="no layout 9"):
        builder.build(lab.order(lab.base, layout=9), lab.progress.append)


def test_a_commit_that_does_not_compile_is_its_own_fault(lab: BuildLab) -> None:
    bad = lab.change({"kernel/work.c": "int work(int x) { return y; }\n"}, "broken")
    with pytest.raises(BuildFailed, match="does not build: it does not compile") as error:
        lab.builder().build(lab.order(bad), lab.progress.append)
    assert "undeclared" in error.value.details.splitlines()[0]
    log = Path(error.value.details.rsplit("log: ", 1)[1])
    assert "error:" in log.read_text()
    assert lab.builder().cached(lab.order(bad)) is None
    mended = lab.change({"kernel/work.c": "int work(int x) { return x * 4; }\n"}, "mended")
    assert lab.builder().build(lab.order(mended), lab.progress.append).image.exists()


def packed(program: str, factor: int) -> dict[str, str]:
    """A toy whose image is a packed program, and whose build id has bytes that end lines and strings."""
    image = "$(O)/arch/x86/boot/bzImage"
    makefile = MAKEFILE.replace("--build-id=sha1", f"--build-id=0x{'0a00' * 10}")
    return {
        "Makefile": makefile.replace(f"objcopy -S $(O)/vmlinux {image}", f"gzip -c {program} >{image}"),
        "kernel/work.c": f"int work(int x) {{ return x * {factor}; }}\n",
    }


def test_an_image_must_hold_the_kernel_just_linked(lab: BuildLab) -> None:
    right = lab.change(packed("$(O)/vmlinux", 5), "packed")
    assert lab.builder().build(lab.order(right), lab.progress.append).build_id == "0a00" * 10
    wrong = lab.change(packed("/bin/true", 7), "another program, which has a build id as well")
    made: set[int] = set()
    for _ in "ab":  # the second try builds as well, instead of telling what the first one found
        with pytest.raises(InfrastructureError, match="held another kernel than the one just linked"):
            lab.builder().build(lab.order(wrong), lab.progress.append)
        results = (lab.root / "cache" / "builder" / "results").glob("*/artefacts.tar")
        made.add(max(file.stat().st_mtime_ns for file in results))
    assert len(made) == 2


NO_NOTES = """\
PHDRS { text PT_LOAD; note PT_NOTE; }
SECTIONS { .text : { *(.text*) } :text .note : { *(.nothing) } :note /DISCARD/ : { *(.note*) } }
"""


def test_a_kernel_with_room_for_notes_and_none_in_it_is_a_kernel(lab: BuildLab) -> None:
    makefile = MAKEFILE.replace("-Wl,--build-id=sha1", "-Wl,--build-id=none -T $(srctree)/kernel.lds")
    bare = lab.change({"Makefile": makefile, "kernel.lds": NO_NOTES}, "as v2.6.21-rc4")
    kernel = lab.builder().build(lab.order(bare), lab.progress.append)
    assert kernel.image.exists()
    assert kernel.build_id == ""


def configured(kconfig: str, after: str = "") -> dict[str, str]:
    """A toy whose code depends on whether SPEED is granted. after: a command that follows the link."""
    factor = "-DFACTOR=$(if $(shell grep CONFIG_SPEED=y $(O)/.config),3,5)"
    makefile = MAKEFILE.replace("$(CC) -O2", f"$(CC) {factor} -O2")
    image = "\t@objcopy -S $(O)/vmlinux $(O)/arch/x86/boot/bzImage\n"
    return {
        "Makefile": makefile.replace(image, image + after),
        "Kconfig": kconfig,
        "kernel/work.c": "int work(int x) { return x * FACTOR; }\n",
    }


def test_a_folder_that_is_warm_from_another_configuration_gives_the_kernel_asked_for(lab: BuildLab) -> None:
    slow = lab.change(configured("config TOY\n"), "without SPEED")
    fast = lab.change(configured("config TOY\nconfig SPEED\n"), "with SPEED")
    before = lab.builder().build(lab.order(slow), lab.progress.append)
    after = lab.builder().build(lab.order(fast), lab.progress.append)
    cold = lab.builder(cache=lab.root / "cold").build(lab.order(fast), lab.progress.append)
    assert after.binary == cold.binary != before.binary
    assert (before.options, after.options) == ({"TOY": "y"}, {"TOY": "y", "SPEED": "y"})


def test_what_fails_in_a_warm_folder_is_built_from_nothing_and_the_log_tells(lab: BuildLab) -> None:
    row = '[[toolchain]]\nname = "gcc"\ncompiler = "gcc"\ndriver = "make"\nsince = "v5.4"\n'
    (lab.kernels / "toolchains.toml").write_text(row)
    picky = MAKEFILE.replace("bzImage: ", "bzImage: fresh ") + "fresh:\n\t@test ! -e $(O)/links\n"
    later = lab.change({"Makefile": picky}, "builds in a new folder only")
    builder = lab.builder()
    kernels = [builder.build(lab.order(commit), lab.progress.append) for commit in (lab.base, later)]
    told = [
        "the first try, in the output folder of another commit, failed" in k.log.read_text() for k in kernels
    ]
    assert told == [False, True]


def test_a_kernel_that_is_not_configured_as_recorded_is_nobodys(lab: BuildLab) -> None:
    change = "\t@sed -i 's/CONFIG_SPEED=y/# CONFIG_SPEED is not set/' $(O)/.config\n"
    odd = lab.change(configured("config TOY\nconfig SPEED\n", change), "changes its own configuration")
    with pytest.raises(InfrastructureError, match="not configured as it was asked for") as error:
        lab.builder().build(lab.order(odd), lab.progress.append)
    log = Path(error.value.details.rsplit("log: ", 1)[1])
    assert "< CONFIG_SPEED=y" in log.read_text()


def with_blob(text: str) -> dict[str, str]:
    """A toy that takes in another file in a way that only the assembler sees."""
    rule = "$(O)/%.o: %.c $(O)/.config"
    blob = r'asm(".section .blob, \"a\"\n.incbin \"" BLOB "\"\n.previous");'
    makefile = MAKEFILE.replace("$(CC) -O2", "$(CC) -DBLOB='\"$(srctree)/blob\"' -O2")
    return {
        "Makefile": makefile.replace(rule, f"{rule} $(wildcard blob)"),
        "kernel/work.c": f"int work(int x) {{ return x; }}\n{blob}\n",
        "blob": text,
    }


def test_the_compiler_cache_sees_what_the_assembler_takes_in(lab: BuildLab) -> None:
    for text in ("the first kernel", "another kernel"):
        sha = lab.change(with_blob(text), text)
        assert text.encode() in lab.builder().build(lab.order(sha), lab.progress.append).image.read_bytes()


def test_options_required_and_wanted(lab: BuildLab) -> None:
    poor = lab.change({"Kconfig": "config TOY\n"}, "SPEED is gone")
    assert lab.builder().build(lab.order(poor), lab.progress.append).lost == ("SPEED",)
    poorer = lab.change({"Kconfig": "config SPEED\n"}, "TOY is gone")
    with pytest.raises(BuildFailed, match="does not grant what the recipe 'toy' requires: CONFIG_TOY=y"):
        lab.builder().build(lab.order(poorer), lab.progress.append)


def test_a_tree_without_linux_is_no_source(lab: BuildLab) -> None:
    gone = lab.change({"Kbuild": None}, "not Linux")
    with pytest.raises(SourceFailed, match="holds no Linux kernel"):
        lab.builder().build(lab.order(gone), lab.progress.append)


def test_patches_are_built_in_and_named_if_they_do_not_apply(lab: BuildLab) -> None:
    patch = lab.root / "five.patch"
    patch.write_text(
        "--- a/kernel/work.c\n+++ b/kernel/work.c\n@@ -1 +1 @@\n"
        "-int work(int x) { return x * 3; }\n+int work(int x) { return x * 5; }\n"
    )
    builder = lab.builder()
    plain = builder.build(lab.order(lab.base), lab.progress.append)
    patched = builder.build(lab.order(lab.base, patches=(patch,)), lab.progress.append)
    assert patched.binary != plain.binary
    other = lab.change({"kernel/work.c": "int work(int x) { return x; }\n"}, "elsewhere")
    with pytest.raises(SourceFailed, match=r"five\.patch does not apply"):
        builder.build(lab.order(other, patches=(patch,)), lab.progress.append)


def test_a_builder_that_shares_no_files_gets_the_source_sent(lab: BuildLab) -> None:
    here = lab.builder().build(lab.order(lab.base), lab.progress.append)
    cache = lab.root / "cache-of-far"
    far, built_before = lab.builder("far", cache), lab.links(lab.root / "far")
    kernel = far.build(lab.order(lab.base), lab.progress.append)
    assert kernel.image.is_relative_to(cache)
    assert kernel.options == here.options
    change = lab.change({"kernel/work.c": "int work(int x) { return x + 7; }\n"}, "more")
    assert far.build(lab.order(change), lab.progress.append).binary != kernel.binary
    assert not (lab.root / "far" / "builder" / "repository.git" / "objects" / "info" / "alternates").exists()
    assert lab.links(lab.root / "far") == built_before + 2


def test_the_users_repository_is_untouched(lab: BuildLab) -> None:
    (lab.history.path / "kernel" / "work.c").write_text("a dirty checkout\n")
    (lab.history.path / "untracked").write_text("mine\n")
    before = lab.history.git("status", "--porcelain")
    lab.builder().build(lab.order(lab.base), lab.progress.append)
    assert lab.history.git("status", "--porcelain") == before
    lab.history.git("checkout", "--quiet", "--force", "HEAD")
    (lab.history.path / "untracked").unlink()


def test_a_colon_in_the_path_of_the_repository_leads_nowhere_else(tmp_path: Path) -> None:
    lab = BuildLab(tmp_path)
    lab.history = ToyHistory(lab.history.path.rename(tmp_path / "linux:6.1"))
    assert lab.builder().build(lab.order(lab.base), lab.progress.append).release == "6.1.0-toy"


def test_a_missing_tool_is_not_the_commits_fault(lab: BuildLab, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lab.root / "few-tools"
    folder.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name != "ccache":
            (folder / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(folder))
    fresh = lab.change({"Documentation/toy.rst": "Tools.\n"}, "for want of a tool")
    with pytest.raises(InfrastructureError, match="the builder 'here' lacks: ccache"):
        lab.builder().build(lab.order(fresh), lab.progress.append)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "small", 6) as folder:
        yield folder


def test_a_full_disk_is_not_the_commits_fault(lab: BuildLab, small_disk: Path) -> None:
    huge = "const char huge[16 << 20] = {1};\nint work(int x) { return x * 3 + huge[x]; }\n"
    large = lab.change({"kernel/work.c": huge}, "large")
    with pytest.raises(InfrastructureError, match=r"disk is full|No space left on device"):
        lab.builder(cache=small_disk).build(lab.order(large), lab.progress.append)


def test_another_builder_goes_on_with_what_a_full_disk_refused(lab: BuildLab, small_disk: Path) -> None:
    huge = "const char huge[16 << 20] = {{1}};\nint work(int x) {{ return x * {} + huge[x]; }}\n"
    orders = [
        lab.order(lab.change({"kernel/work.c": huge.format(number)}, f"huge {number}")) for number in (5, 7)
    ]
    well = lab.builder()
    queue = BuildQueue([lambda stop: lab.builder(cache=small_disk), lambda stop: well], lambda: False)
    kernels = [queue.wait(build) for build in [queue.order(one, lab.progress.append) for one in orders]]
    queue.close()
    assert [kernel.sha for kernel in kernels if kernel is not None] == [order.sha for order in orders]
    assert not any(kernel.image.is_relative_to(small_disk) for kernel in kernels if kernel is not None)
    assert [text for text in lab.progress if "the disk is full: it is taken out for" in text]


CHILD = """
import sys
from pathlib import Path
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.engine.build_queue import BuildQueue
from bisector.ports import BuildOrder
from bisector.resources import resource
root, sha = Path(sys.argv[1]), sys.argv[2]
ansible = Ansible(resource("playbooks"), root / "lab.yml")
builder = KernelBuilder(root / "repo", root / "cache", ansible, kernels=root / "kernels")
builder.build(BuildOrder(sha, "toy"), print)
"""


@pytest.mark.parametrize("moment", ["compiling", "compiled"])
def test_a_killed_build_is_resumed_and_a_finished_one_not_repeated(tmp_path: Path, moment: str) -> None:
    lab = BuildLab(tmp_path)
    slow = MAKEFILE.replace('@echo "  LD      vmlinux"', '@echo "  LD      vmlinux"; sleep 4')
    sha = lab.change({"Makefile": slow}, "slow to link")
    log = tmp_path / "cache" / "builder" / "work" / "tuxmake" / "build.log"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), sha], start_new_session=True)
    try:
        until(lambda: log.exists() and "LD      vmlinux" in log.read_text(), 120)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    out = tmp_path / "cache"
    if moment == "compiled":  # what was started goes on without its master, or ends: either must end well
        time.sleep(6)
    assert lab.builder().cached(lab.order(sha)) is None
    kernel = lab.builder().build(lab.order(sha), lab.progress.append)
    assert kernel.image.read_bytes()[:4] == b"\x7fELF"
    assert 1 <= lab.links(out) <= 2
    assert lab.builder().build(lab.order(sha), lab.progress.append).cached
