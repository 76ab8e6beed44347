"""Requirements of a workload on kernel and testbed, and the settings that it pins while it runs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from bisector.schemas.host_settings import CpuList, HostSettings, Switch
from bisector.schemas.loading import Argument, Distinct, Spec, matching
from bisector.schemas.ranges import Cpus, Nice

_SIZE = re.compile(r"(?P<number>[1-9][0-9]{0,5})(?P<unit>[MGT])")
_UNITS = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Requirements(Spec):
    """Requirements on a kernel and a testbed; `perfbisect workload check` tests them."""

    packages: Distinct[
        Annotated[str, matching(r"[a-z0-9][a-z0-9+.-]{1,99}", "the name of a Debian package")]
    ] = Field(
        default=(),
        description="Debian packages; a guest gets an image with them, other testbeds must have them",
    )
    programs: Distinct[Argument] = Field(
        default=(),
        description="programs that must be found on the testbed; '{name}' of a parameter becomes its value",
    )
    kernel: Distinct[Annotated[str, matching(r"[a-z0-9][a-z0-9-]{0,99}", "the name of a fragment")]] = Field(
        default=(), description="fragments of kernels/configs that its kernels are built with, all granted"
    )
    block_device: str | None = Field(
        default=None,
        description="a scratch disk of at least so many bytes: '512M', '1G'; its content is lost",
    )
    cgroup: Literal["v1", "v2", "any"] | None = Field(
        default=None, description="version of the control groups; asks for the fragment 'cgroup' as well"
    )
    cpus: Cpus = Field(default=1, description="the least number of CPUs")

    @field_validator("block_device", mode="before")
    @classmethod
    def _size(cls, value: object) -> object:
        if value is not None and (not isinstance(value, str) or _SIZE.fullmatch(value) is None):
            raise ValueError("write the size of the device as '512M' or '1G'")
        return value

    @property
    def fragments(self) -> tuple[str, ...]:
        """The config fragments that kernels for this workload have in addition to the recipe's."""
        return tuple(sorted({*self.kernel, *(("cgroup",) if self.cgroup else ())}))

    @property
    def block_device_bytes(self) -> int:
        """The least size of the scratch disk in bytes; 0 where none is needed."""
        match = _SIZE.fullmatch(self.block_device) if self.block_device is not None else None
        return int(match["number"]) * _UNITS[match["unit"]] if match is not None else 0


_SysctlName = Annotated[
    str, matching(r"[a-z0-9_][A-Za-z0-9_./-]{0,199}", "the name of a sysctl: 'vm.swappiness'")
]
_VariableName = Annotated[
    str, matching(r"[A-Za-z_][A-Za-z0-9_]{0,199}", "the name of a variable: letters, digits and '_'")
]


class Environment(HostSettings):
    """The settings of the testbed while the workload runs. Their values before and after are recorded."""

    autogroup: Switch = Field(
        default="off", description="an SSH session's task group costs a fifth of a pipe-test"
    )
    cpus: CpuList | None = Field(default=None, description="the CPUs that the workload runs on")
    nice: Nice = Field(default=0, description="as of nice(1)")
    seed: Literal["fresh"] | None = Field(
        default=None, description="of an emulated guest's random numbers: 'fresh' in each boot"
    )
    sysctl: dict[_SysctlName, Argument] = Field(default_factory=dict, description="name with dots -> value")
    variables: dict[_VariableName, Argument] = Field(
        default_factory=dict, description="added to the fixed environment"
    )

    @field_validator("sysctl", "variables", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if isinstance(value, dict):
            return {
                k: str(v) if isinstance(v, int | float) and not isinstance(v, bool) else v
                for k, v in value.items()
            }
        return value

    def settings(self) -> dict[str, str]:
        """Return the settings for `Job.environment`: also 'sysctl.<name>' and 'env.<NAME>'."""
        flat = {**super().settings(), "autogroup": "1" if self.autogroup == "on" else "0"}
        flat["nice"] = str(self.nice)
        flat |= {name: of for name, of in (("cpus", self.cpus), ("seed", self.seed)) if of is not None}
        flat.update({f"sysctl.{name}": value for name, value in self.sysctl.items()})
        flat.update({f"env.{name}": value for name, value in self.variables.items()})
        return flat
