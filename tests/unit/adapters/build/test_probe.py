"""What a builder lacks, and whose fault it is; with real compilers and images: tests/integration/builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from bisector.adapters.ansible.playbook_events import Played, Task
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.probe import BuilderFacts, WantedToolchain, probe_builder
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.kernel.toolchain import Archive, Toolchain

WELL = {
    "folder": "/var/builds",
    "here": "no",
    "cpus": "8",
    "toolchain": "gcc 12.2.0",
    "trees": "a b",
    "sandbox": "bwrap",
    "compiles": "yes",
    "missing": "",
}
PACKAGED = Toolchain(name="old", compiler="gcc-9", package="gcc-9 binutils")
BOXED = Toolchain(name="boxed", compiler="gcc-9", container=f"x/gcc@sha256:{'0' * 64}", driver="make")
ARCHIVED = Toolchain(
    name="tarred", compiler="gcc-7", archive=Archive(file="gcc-7.tar.xz", sha256="a" * 64), driver="make"
)


class Builder:
    """Plays of one builder: each tells the next facts, or fails as told; the last goes on."""

    def __init__(self, folder: Path, *answers: dict[str, str] | Task) -> None:
        self.answers, self.folder = list(answers), folder
        self.given: list[dict[str, Any]] = []
        self.said: list[str] = []

    def play(self, _: str, **given: Any) -> Played:
        self.given.append(given)
        told = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        log = self.folder / f"{len(self.given)}.log"
        log.write_text("the play")
        if isinstance(told, Task):
            return Played("builder", (told,), 1.0, log)
        lines = "\n".join(f"{name}={value}" for name, value in told.items())
        task = Task("looking at the builder", "far", "ok", 1.0, {"stdout": lines})
        return Played("builder", (task,), 1.0, log)

    def probe(self, row: Toolchain = PACKAGED, **wanted: Any) -> BuilderFacts:
        """Probe it as the host 'far'."""
        return probe_builder(
            cast(Ansible, self), "far", self.folder, WantedToolchain(row, **wanted), self.said.append
        )

    def refuses(self, row: Toolchain = PACKAGED, **wanted: Any) -> InfrastructureError:
        """Return why it is of no use."""
        with pytest.raises(InfrastructureError) as error:
            self.probe(row, **wanted)
        return error.value


def without(*missing: str) -> dict[str, str]:
    return {**WELL, "missing": " ".join(missing)}


def broken(name: str, **result: str) -> Task:
    return Task(name, "far", "failed", 1.0, result)


def test_what_a_builder_has(tmp_path: Path) -> None:
    builder = Builder(tmp_path, WELL)
    assert builder.probe() == BuilderFacts("/var/builds", False, 8, "gcc 12.2.0", ("a", "b"))
    assert Builder(tmp_path, {**WELL, "here": "yes"}).probe().here
    assert builder.said == [] and not list(tmp_path.glob("*.log")), "the log of what went well is of no use"


@pytest.mark.parametrize(("installs", "plays"), [(True, 2), (False, 1)])
def test_packages_are_installed_only_where_that_was_asked_for(
    tmp_path: Path, installs: bool, plays: int
) -> None:
    builder = Builder(tmp_path, without("gcc-9", "bison"), WELL)
    if installs:
        builder.probe(install=True)
        assert builder.said == ["installing gcc-9 binutils bison on 'far'"]
    else:
        why = builder.refuses()
        assert why.message == "the builder 'far' lacks: gcc-9 bison"
        assert "gcc-9 binutils bison; or 'perfbisect kernel check A..B --install' does it" in why.cure
    assert len(builder.given) == plays
    assert builder.given[0]["variables"]["perfbisect_packages"] == []
    assert builder.given[-1]["variables"]["perfbisect_packages"] == (
        ["gcc-9", "binutils", "bison"] if installs else []
    )


def test_what_no_package_is_known_for_is_said_after_those_that_are(tmp_path: Path) -> None:
    why = Builder(tmp_path, without("gcc-9"), without("pahole")).refuses(install=True)
    assert why.message == "the builder 'far' lacks: pahole" and "run 'make deps' there" in why.cure
    inside = Builder(tmp_path, without("bc")).refuses(BOXED)
    assert inside.message.endswith(f"lacks: bc, in the image {BOXED.container}")
    assert inside.cure == "take an image that has them", "a package of the builder would not help"
    later = Builder(tmp_path, without("podman"), without("gcc-9")).refuses(BOXED, install=True)
    assert later.cure == "take an image that has them", "podman was installed on the way"
    engine = Builder(tmp_path, without("podman")).refuses(BOXED)
    assert engine.message == "the builder 'far' lacks: podman" and "podman runc" in engine.cure


def test_the_time_for_what_is_fetched_is_longer(tmp_path: Path) -> None:
    builder = Builder(tmp_path, without("gcc-9"), WELL)
    builder.probe(install=True)
    builder.probe(BOXED)
    builder.probe(ARCHIVED, mirror="https://m.y.org/")
    assert [one["timeout"] for one in builder.given] == [300.0, 3600.0, 3600.0, 3600.0]
    assert builder.given[-1]["variables"]["perfbisect_archive"] == {
        "url": "https://m.y.org/gcc-7.tar.xz",
        "sha256": "a" * 64,
    }
    assert (
        builder.given[0]["variables"]["perfbisect_tuxmake"]
        and not builder.given[-1]["variables"]["perfbisect_tuxmake"]
    )


def test_a_builder_without_a_sandbox_builds_nothing(tmp_path: Path) -> None:
    why = Builder(tmp_path, {**WELL, "sandbox": "none"}).refuses()
    assert "has no sandbox" in why.message and "can write to /var/builds" in why.details
    silent = {name: value for name, value in WELL.items() if name != "sandbox"}
    assert "has no sandbox" in Builder(tmp_path, silent).refuses().message, "no word of one is none"
    weak = Builder(tmp_path, {**WELL, "sandbox": "user"})
    weak.probe()
    assert weak.said == [
        "'far' has no bubblewrap that works: builds run as another user, but with the network"
    ]


@pytest.mark.parametrize(("told", "said"), [("cc1: killed", "cc1: killed"), ("", "no word of why")])
def test_a_compiler_that_does_not_compile_is_the_builders_fault(tmp_path: Path, told: str, said: str) -> None:
    """Else each kernel would be said to fail."""
    why = Builder(tmp_path, {**WELL, "compiles": told}).refuses()
    assert why.message == "the toolchain 'old' does not work on the builder 'far'"
    assert why.details == f"gcc-9 on one small C file: {said}" and "the row 'old'" in why.cure


def test_an_archive_needs_a_mirror(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"'tarred' is the archive gcc-7\.tar\.xz, and no mirror"):
        Builder(tmp_path, WELL).probe(ARCHIVED)


def test_a_toolchain_that_cannot_be_had_is_told_by_its_row(tmp_path: Path) -> None:
    fetching, mirror = "fetching the toolchain", "https://m.y.org"
    wrong = Builder(tmp_path, broken(fetching, msg="The Checksum did not match")).refuses(
        ARCHIVED, mirror=mirror
    )
    assert wrong.message.endswith("is not what the toolchain 'tarred' wants: its checksum differs")
    assert wrong.cure == f"mend sha256 in that row if you trust {mirror}, else the file there"
    away = Builder(tmp_path, broken(fetching, msg="HTTP Error 404")).refuses(ARCHIVED, mirror=mirror)
    assert away.message == f"the toolchain 'tarred' cannot be put on the builder 'far' ({fetching})"
    assert "HTTP Error 404" in away.details and (tmp_path / "1.log").exists(), "the log is named there"
    image = Builder(tmp_path, broken("looking for the toolchain's image", msg="no route")).refuses(BOXED)
    assert image.message.startswith("the image of the toolchain 'boxed' cannot be fetched")
    for row in (PACKAGED, BOXED, ARCHIVED):
        other = Builder(tmp_path, broken("installing packages", msg="checksum of a package")).refuses(
            row, mirror=mirror
        )
        assert other.message == "installing packages failed on 'far'", "it is not the toolchain's fault"
