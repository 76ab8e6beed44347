"""Facts of kernels and monitors for the report: no decision depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Userspace = Literal["debian", "initramfs"]
"""A distribution's root with SSH, for kernels that its C library runs on (3.2 and later); or a few static
programs in an initramfs, driven over a serial port, for any kernel since 2.6.18."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What a report says of a built kernel. Paths are texts; sizes in bytes; key: of its entry in the cache.

    options: effective .config as NAME -> value, absent options left out; lost: wanted, but not granted.
    compiler: the command that was wanted, with its archive or image; toolchain: what that says it is.
    """

    release: str = ""
    build_id: str = ""
    image: str = ""
    config: str = ""
    log: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    toolchain: str = ""
    key: str = ""
    compiler: str = ""


USER_CODE = "[user programs]"
"""The name of all user code in counted profiles, where its parts are not told apart."""


@dataclass(frozen=True, slots=True)
class MonitorValue:
    """One number that a monitor gives. error: relative standard error where it is a mean, else None."""

    name: str
    value: float
    unit: str = ""
    error: float | None = None


@dataclass(frozen=True, slots=True)
class MonitorResult:
    """What one monitor saw in runs of its own, which are no samples.

    folder: path of its raw files; absent: what it could not give, each in words; seconds: what its runs took.
    unasked: recorded only because the report of an emulated bisection explains its culprit by function.
    """

    monitor: str
    folder: str = ""
    seen: tuple[MonitorValue, ...] = ()
    absent: tuple[str, ...] = ()
    seconds: float = 0.0
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class TouchedCode:
    """What a commit changes. functions: of its diff; anything: files that may change any function."""

    sha: str
    functions: frozenset[str] = frozenset()
    anything: frozenset[str] = frozenset()
