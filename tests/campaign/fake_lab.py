"""A lab on which the real adapters work: programs stand in for ansible-playbook, libvirtd and QEMU, no more.

Real are the builder, its cache and locks, the running of plays, the guests' testbed, its sessions over a
serial line, the store, the engine and the command line. The stand-ins are processes of their own: a play is a
shell that writes the artefacts of a build; a guest is a shell, outside of our process group as QEMU is, that
speaks the measuring agent's protocol. What a kernel measures comes from `bisector.simulation`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder, PlannedBuild
from bisector.adapters.build.probe import BuilderFacts
from bisector.adapters.guest import qemu_processes
from bisector.adapters.guest.libvirt_connection import Domain
from bisector.adapters.system import orphans, processes
from bisector.errors import InfrastructureError
from bisector.ports import BuildOrder, Job, Kernel, MetricSpec, Progress
from bisector.schemas.kernel.build_plan import BuildPlan, load_plan
from bisector.schemas.kernel.release import Release
from bisector.schemas.kernel.toolchain import Toolchain
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fakes import METRIC

COMMITS = 10
RECIPE, RELEASE = "x86_64-guest", "6.1.0-fake"
RUNS_MAX = 64
"""Answers that a guest has ready; no boot on fakes has had more than a dozen runs."""
PACE_SECONDS = 0.01
"""Of a build, a boot and a run: long enough that a kill hits the middle of one."""
_PADDING_BYTES = 4096

VARIANTS = 8
"""Histories: each has its own culprit, noise, and commits that do not build or boot."""


def make_lab(variant: int) -> SyntheticLab:
    """Return the history of a variant. Its culprit and the commits beside it can be measured."""
    culprit = 4 + variant % (COMMITS - 7)
    lab = SyntheticLab(linear(COMMITS), LabModel(run_noise=0.1), {culprit: 10.0}, seed=variant)
    lab.untestable.clear()
    if variant % 4 != 3:
        lab.untestable[COMMITS - 3 if culprit < COMMITS // 2 else 2] = "build" if variant % 2 else "boot"
    return lab


def make_job(folder: Path) -> Job:
    """Return the job: nothing of it is executed, a guest's answers are ready before it boots."""
    folder.mkdir(parents=True, exist_ok=True)
    return Job("fake", folder, ("./fake",), (MetricSpec(METRIC, "s"),), timeout=2.0, checksum="fake")


# --- builds -------------------------------------------------------------------------------------------------


class Image(NamedTuple):
    """What a fake kernel's image holds."""

    commit: int
    layout: int
    binary: str
    broken: bool

    @property
    def build_id(self) -> str:
        """What the running kernel shows."""
        return hashlib.sha1(self.binary.encode()).hexdigest()

    def content(self) -> bytes:
        """Return the image: its facts, padding as a kernel has code, a checksum, which the guest tests."""
        padding = hashlib.sha256(self.binary.encode()).hexdigest() * (_PADDING_BYTES // 64)
        text = json.dumps(self._asdict()) + "\n" + padding
        return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}".encode()

    @classmethod
    def read(cls, path: Path) -> Image | None:
        """Return what an image holds, None for one that is damaged: such a kernel panics."""
        digest, _, text = path.read_bytes().partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            return None
        return cls(**json.loads(text.partition(b"\n")[0]))


_PLAY = """
trap 'kill $!; exit 1' TERM
echo '{"event": "playbook_on_task_start", "event_data": {"task": "building"}}'
setsid sleep "$1" & wait $!
cp "$2" "$3" || exit 2
[ "$5" ] && echo "$5" >>"$4"
printf '%s\\n' "$6"
"""
"""ansible-runner: says that a task begins, has a worker in a session of its own, says what the task gave."""


class FakeAnsible(Ansible):
    """The real running of plays; the program that is run is `_PLAY` instead of ansible-runner."""

    lab: SyntheticLab
    log: Path

    def _command(self, playbook: str, limit: str, private: Path, *_: object) -> list[str]:
        if playbook == "reap":  # what an interrupted play left on a remote host: nothing here
            said = json.dumps({"event": "runner_on_ok", "event_data": {"task": "reap", "host": limit}})
            return ["/bin/sh", "-c", 'printf "%s\\n" "$1"', "fake-play", said]
        given = (private / "env" / "extravars").read_text()
        variables = json.loads(given, object_hook=lambda one: one.get("__ansible_unsafe", one))
        ordered = variables["perfbisect_build"]
        commit = self.lab.graph.shas.index(ordered["PB_TREE"])
        layout = int(ordered["PB_OUT"].rpartition("-")[2])
        fails = self.lab.untestable.get(commit) == "build"
        binary = self.lab.binary(commit, layout)
        image = Image(commit, layout, binary, self.lab.untestable.get(commit) == "boot")
        files = {"build.log": b"fake.c:1:1: error: expected ';'\n" if fails else b"  CC fake.o\n"}
        if not fails:
            files |= {"image": image.content(), "config": b"CONFIG_FAKE=y\n"}
        artefacts = private / "artefacts.tar"
        with tarfile.open(artefacts, "w") as archive:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        facts = {
            "status": "failed" if fails else "ok",
            "binary": hashlib.sha256(binary.encode()).hexdigest(),
            "build_id": image.build_id,
            "release": RELEASE,
            "seconds": "60",
        }
        said = "\n".join(f"{name}={value}" for name, value in facts.items())
        event = {
            "event": "runner_on_ok",
            "event_data": {"task": "building", "host": limit, "res": {"stdout": said}},
        }
        built = "" if fails else ordered["PB_KEY"]
        arguments = (PACE_SECONDS, artefacts, variables["perfbisect_artefacts"], self.log, built)
        return ["/bin/sh", "-c", _PLAY, "fake-play", *map(str, arguments), json.dumps(event)]


@cache
def _plan() -> BuildPlan:
    return load_plan(RECIPE, Release.parse("v6.1"), "fake")


class _NoTrees:
    """The trees of a repository that is not there: a tree has its commit's name."""

    def object_folders(self) -> Sequence[Path]:
        return (Path("/fake/objects"),)

    def defines(self, tree: str, option: str) -> bool:
        return True


class FakeBuilder(KernelBuilder):
    """The real builder over `FakeAnsible`; only the git repository and the compiler are not there."""

    moment: Callable[..., None] = staticmethod(lambda name, image=None: None)
    """Called with the name of a moment, and with the image that is about to be taken from the cache."""

    def build(self, order: BuildOrder, progress: Progress) -> Kernel:
        """Say 'cached' or 'build' before, and 'playing' in the middle of the play."""

        def told(text: str) -> None:
            progress(text)
            if text == "building":
                self.moment("playing")

        known = self.cached(order)
        if known is None:
            self.moment("build")
        else:
            self.moment("cached", known.image)
        return _for_serial_line(super().build(order, told))

    def plan(self, order: BuildOrder) -> PlannedBuild:
        """Return the same plan for all commits."""
        return PlannedBuild(_plan(), order.sha)

    def probe(self, toolchain: Toolchain, progress: Progress) -> BuilderFacts:
        """Return a builder that shares our files."""
        found = BuilderFacts(str(self.cache), here=True, cpus=1, toolchain="fake", trees=())
        self._builders[toolchain.identity] = found
        return found

    @property
    def _kernel_trees(self) -> Any:
        return _NoTrees()


def _for_serial_line(kernel: Kernel) -> Kernel:
    """Return the kernel as one whose guests are driven over a serial line: no network, no disk."""
    return replace(kernel, userspace="initramfs")


# --- guests -------------------------------------------------------------------------------------------------

_GUEST = """
console=$1 fifos=$2 answers=$3 log=$4 pace=$5
exec 3<"$fifos.in" 4>"$fifos.out" 5<"$answers"
echo "Linux version fake" >>"$console"
sleep "$pace"
read -r facts <&5
if [ "$facts" = panic ]; then
    echo "Kernel panic - not syncing: fake" >>"$console"
    exit
fi
printf '%s\\n' "$facts" >&4
echo '{"hello": "fake", "protocol": 1}' >&4
while read -r line <&3; do
    if [ "$line" = quit ]; then exit; fi
    if [ "$line" = run ]; then
        sleep "$pace"
        read -r answer <&5
        echo "$fifos" >>"$log"
        printf '%s\\n' "$answer" >&4
    fi
done
"""
"""A guest: boots, or panics, says its facts, and answers each 'run'. Its answers are ready, a line each.

A run is counted before it is answered: once answered it is recorded, and the guest may be ended at any time.
"""


class FakeLibvirt:
    """What libvirtd is for the real testbed: it starts guests, which outlive us, and can be killed itself."""

    def __init__(self, lab: SyntheticLab, log: Path, moment: Callable[[str], None]) -> None:
        """log: gets a line for each run that a guest has ended."""
        self.lab, self.log, self.moment = lab, log, moment
        self.uri = "fake:///system"
        self.dead = False
        self.wrong_kernel = False
        self.guest = 0
        """Process id of the guest that was started last."""

    def __call__(self) -> FakeLibvirt:
        """Connect, as the testbed does for each boot. A dead daemon is started by that."""
        self.dead = False
        return self

    def close(self) -> None:
        """End the connection: guests end with it (auto-destroy)."""
        if self.guest:
            processes.kill(self.guest)

    def sweep(self, prefix: str) -> list[str]:
        """End what a killed process left."""
        pids = self.pids(prefix)
        for pid in pids:
            processes.kill(pid)
        return [str(pid) for pid in pids]

    def pids(self, prefix: str) -> list[int]:
        """Return the guests' processes of this name or prefix."""
        return qemu_processes.qemu_pids(prefix)

    def end_of(self, name: str, wait: float = 0.0) -> str:
        """Say how a guest ended whose process is gone."""
        return "crashed"

    def start(self, name: str, xml: str) -> Domain:
        """Start a guest. Raises InfrastructureError as libvirt does when its daemon is gone."""
        if self.dead:
            raise InfrastructureError(
                "libvirt cannot start the guest", details="End of file while reading data"
            )
        kernel, console, fifos = (
            Path(found[1])
            for pattern in (
                "<kernel>(.*)</kernel>",
                '<serial type=\'file\'>\\s*<source path="([^"]*)"',
                '<serial type=\'pipe\'>\\s*<source path="([^"]*)"',
            )
            if (found := re.search(pattern, xml)) is not None
        )
        answers = fifos.with_name("answers")
        answers.write_text(self._answers(kernel))
        arguments = (console, fifos, answers, self.log, PACE_SECONDS)
        environment = {k: v for k, v in os.environ.items() if k != orphans.MARK}  # QEMU is libvirtd's child
        process = subprocess.Popen(
            ["fake-qemu", "-c", _GUEST, "sh", *map(str, arguments), "-name", f"guest={name}"],
            executable="/bin/sh",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        threading.Thread(target=process.wait, daemon=True).start()  # else it stays as a zombie
        self.guest = process.pid
        self.moment("guest")
        return Domain(self, name, _Handle(self))  # type: ignore[arg-type]

    def _answers(self, kernel: Path) -> str:
        image = Image.read(kernel)
        if image is None or image.broken:
            return "panic\n"
        if self.wrong_kernel:
            self.wrong_kernel = False
            image = image._replace(commit=self.lab.graph.good, binary="another")
        # By commit and layout, not by boot: a boot that a fault made necessary then measures the same.
        boot = self.lab.boot(image.commit, image.layout, "guest", f"{image.commit}.{image.layout}")
        facts = {"uname.release": RELEASE, "build_id": image.build_id, "tainted": "0"}
        values = [boot.run(index, 0.0) for index in range(RUNS_MAX)]
        return "\n".join([json.dumps(facts), *map(_finished, values)]) + "\n"


def _finished(value: float) -> str:
    """Return the agent's answer for a run that took no time and printed a value."""
    numbers = dict.fromkeys(("code", "signal", "killed", "ticks", "out_cut", "err_cut", "tainted"), 0)
    counts = dict.fromkeys(("minor_faults", "major_faults", "switches", "preempted"), 0)
    times = dict.fromkeys(("raw_seconds", "user", "sys"), 0.0)
    out = base64.b64encode(f"{METRIC}: {value!r} s\n".encode()).decode()
    return json.dumps(
        {**numbers, **counts, **times, "seconds": PACE_SECONDS, "out": out, "err": "", "kernel": []}
    )


class _Handle:
    """libvirt's handle of a domain, as far as `Domain` uses it."""

    def __init__(self, libvirt: FakeLibvirt) -> None:
        self._libvirt = libvirt

    def destroy(self) -> None:
        """Nothing: `Domain.destroy` kills what is left."""
