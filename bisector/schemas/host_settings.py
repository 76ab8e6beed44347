"""Settings of a machine for measuring: `environment` of a manifest, or of one testbed in the lab."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from bisector.schemas.loading import Spec, matching
from bisector.schemas.ranges import MAX_CPUS


def _on_off(value: object) -> object:
    """YAML reads a bare on/off as a boolean."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


Switch = Annotated[Literal["on", "off"], BeforeValidator(_on_off)]
Off = Annotated[Literal["off"], BeforeValidator(_on_off)]

_CPU_LIST = "a list of CPUs in ascending order: '0', '0-3' or '0,2-3'"


def _ascending(value: str) -> str:
    """Check the order of a list of CPUs; the kernel's own reader refuses '3-1'."""
    ends = [int(number) for number in re.split("[-,]", value)]
    starts = [int(part.split("-")[0]) for part in value.split(",")]
    if ends != sorted(ends) or len(starts) != len(set(starts)) or ends[-1] >= MAX_CPUS:
        raise ValueError(f"must be {_CPU_LIST}, below {MAX_CPUS}")
    return value


CpuList = Annotated[
    str,
    matching(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*", _CPU_LIST),
    AfterValidator(_ascending),
]


class HostSettings(Spec):
    """Settings of a machine. None leaves one as it is. All are restored when a boot ends."""

    governor: Annotated[str, matching(r"[a-z_]{1,16}", "at most 16 small letters and '_'")] | None = Field(
        default=None, description="of the CPUs' frequency: 'performance', ..."
    )
    turbo: Switch | None = Field(default=None, description="frequencies above the nominal one")
    cstates: Switch | None = Field(default=None, description="idle states deeper than the first one")
    smt: Switch | None = Field(default=None, description="the second thread of each core")
    numa_balancing: Switch | None = Field(default=None, description="moving pages between memory nodes")
    thp: Literal["always", "madvise", "never"] | None = Field(
        default=None, description="transparent huge pages"
    )
    aslr: Switch | None = Field(default=None, description="address space randomisation of programs")
    kaslr: Off | None = Field(default=None, description="of the kernel: 'nokaslr' on its command line")
    isolated: CpuList | None = Field(
        default=None, description="CPUs that run only what asks for them: 'isolcpus=' on the command line"
    )
    irqs: CpuList | None = Field(default=None, description="the CPUs that take interrupts")
    swap: Off | None = Field(default=None, description="swapping to disk: 'off'")
    timers: Off | None = Field(default=None, description="systemd's timers and cron's daemons")
    caches: Literal["dropped"] | None = Field(default=None, description="before the first run of a boot")

    def settings(self) -> dict[str, str]:
        """Return the settings for `Job.environment`: name -> value as the kernel's file takes it."""
        return {
            name: _VALUES.get(name, {}).get(value, value)
            for name in HostSettings.model_fields
            if (value := getattr(self, name)) is not None
        }


_NUMBER = {"on": "1", "off": "0"}
_VALUES: dict[str, dict[str, str]] = {
    "turbo": _NUMBER,
    "numa_balancing": _NUMBER,
    "aslr": {"on": "2", "off": "0"},
    "cstates": {"on": "0", "off": "1"},  # the file is called 'disable'
    # Pages, directory entries and inodes: Documentation/admin-guide/sysctl/vm.rst
    "caches": {"dropped": "3"},
}
