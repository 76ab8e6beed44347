"""Checks for `perfbisect doctor` whether guests can be booted here: libvirt, the image, KVM, a port."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from bisector.adapters.guest.counting.counting_plugin import counting_plugin
from bisector.adapters.guest.debian_packages import root_namespace
from bisector.adapters.guest.kvm_probe import KvmProbe
from bisector.adapters.guest.libvirt_connection import Hypervisor
from bisector.adapters.guest.rootfs import GuestImages
from bisector.adapters.system.architectures import MACHINES, X86_64, Machine
from bisector.adapters.system.command import find_program
from bisector.adapters.system.host_requirements import GUESTS, Check, free_bytes
from bisector.errors import InfrastructureError
from bisector.ports import Progress
from bisector.schemas.kernel.recipe import list_recipes, load_recipe

IMAGE_MIB = 600
"""The guest image takes 220 MiB, its making twice that for a while."""


def guest_checks(
    cache: Path, progress: Progress, *, probe: bool = False, shared: bool = False
) -> list[Check]:
    """Return what is and is not there. probe: boot again to see whether KVM works, else take what is known.

    shared: there is a store where an image may come from.
    Starts libvirt's daemon if that is ours to do; builds nothing.
    """
    counters = [_counters(cache, machine) for machine in _machines()]
    return [_libvirt(), _image(cache, shared), _kvm(cache, progress, probe), *counters, _port()]


def prepare_guests(cache: Path, progress: Progress) -> None:
    """Do what guests need and can be done without installing anything.

    Starts libvirt, builds the image, compiles the counters, asks whether KVM works. Raises
    InfrastructureError for what no guest can be without.
    """
    Hypervisor().close()
    GuestImages(cache).ensure(progress)
    for machine in _machines():
        _counters(cache, machine)
    KvmProbe(cache).ask(progress)


def _libvirt() -> Check:
    try:
        hypervisor = Hypervisor()
    except InfrastructureError as error:
        wrong = f"{error.message}: {error.details}" if error.details else error.message
        return Check("libvirt answers", wrong=wrong, cure=error.cure, needed=GUESTS)
    hypervisor.close()
    return Check("libvirt answers", found=hypervisor.uri, needed=GUESTS)


def _image(cache: Path, shared: bool) -> Check:
    image = GuestImages(cache).present()
    if image is not None:
        for path in (image.disk, image.key):
            if not os.access(path, os.R_OK):
                cure = f"'rm -r {path.parent}': it is built anew; or 'chown -R USER' it, as root"
                wrong = f"{path} may not be read by this user"
                return Check("guest image", wrong=wrong, cure=cure, needed=GUESTS)
        return Check("guest image", found=f"{image.disk} (sha256 {image.checksum[:12]})", needed=GUESTS)
    place, free = free_bytes(cache)
    if free < IMAGE_MIB << 20:
        return Check(
            "guest image",
            wrong=f"not built, and less than {IMAGE_MIB} MiB are free in {place}",
            cure="free some, or point cache_dir (PERFBISECT_CACHE_DIR) to another disk",
            needed=GUESTS,
        )
    try:
        root_namespace()
    except InfrastructureError as error:
        wrong = f"not built yet, and {error.message}: {error.details}"
        return Check("guest image", wrong=wrong, cure=error.cure, needed=GUESTS, optional=shared)
    return Check(
        "guest image",
        wrong="not built yet; the first bisection builds it (one to ten minutes)",
        cure="perfbisect doctor --fix",
        needed=GUESTS,
        optional=True,
    )


def _kvm(cache: Path, progress: Progress, probe: bool) -> Check:
    needed = "wall-clock guests"
    try:
        answer = KvmProbe(cache).ask(progress, again=probe)
    except InfrastructureError as error:  # the answer cannot be kept: the cache folder has a check of its own
        return Check("KVM", wrong=error.message, cure=error.cure, needed=needed, optional=True)
    if answer.works:
        return Check("KVM", found=answer.why, needed=needed)
    cure = "guests are emulated and measure with the instruction clock"
    if not answer.known:
        cure += "; once a kernel is there: perfbisect doctor --probe"
    return Check("KVM", wrong=answer.why, cure=cure, needed=needed, optional=True)


def _machines() -> list[Machine]:
    """Return x86_64, and what else recipes build for and this machine has an emulator of."""
    built = {load_recipe(name).manifest.arch for name in list_recipes()}
    rows = [machine for arch, machine in MACHINES.items() if arch in built and machine is not X86_64]
    return [X86_64, *(machine for machine in rows if find_program(machine.emulator) is not None)]


def _counters(cache: Path, machine: Machine) -> Check:
    """Return whether emulated guests can count; compiles what they need for that, in a second."""
    name, needed = "counters", "counting in emulated guests"
    if machine is not X86_64:
        name, needed = f"{name} ({machine.arch})", f"counting in {machine.arch} guests"
    try:
        plugin = counting_plugin(cache, machine)
    except InfrastructureError as error:
        return Check(name, wrong=error.message, cure=error.cure, needed=needed, optional=True)
    return Check(name, found=str(plugin), needed=needed)


def _port() -> Check:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        return Check(
            "a free port on loopback",
            wrong=str(error.strerror),
            cure="widen net.ipv4.ip_local_port_range, or end what holds so many ports",
            needed=GUESTS,
        )
    return Check("a free port on loopback", found="127.0.0.1", needed=GUESTS)
