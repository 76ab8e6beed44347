"""Settings: `perfbisect.toml`, the environment (PERFBISECT_<KEY>), the command line; later ones override."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import Field, ValidationError

from bisector.errors import RequestError, nearest
from bisector.model.goal import LEAST_ALPHA
from bisector.schemas.loading import Key, Spec, load_toml, refusal

SETTINGS_FILE = "perfbisect.toml"
VARIABLE_PREFIX = "PERFBISECT_"

_PATHS = ("repo", "lab", "state_dir", "cache_dir", "lock_dir")


def _lock_dir() -> Path:
    """Return the same folder for every user of this machine: Debian's for locks, else the temporary one."""
    usual = Path("/run/lock")
    everybody = usual.is_dir() and usual.stat().st_mode & stat.S_IWOTH
    return (usual if everybody else Path("/tmp")) / "perfbisect"  # noqa: S108 - made with the sticky bit


class Settings(Spec):
    """Settings of every bisection here. Relative paths in the file start at the file's folder."""

    repo: Path | None = Field(default=None, description="the kernel's git repository")
    workload: str | None = Field(default=None, description="the workload when none is named")
    recipe: str = Field(
        default="auto", description="how a commit becomes a kernel; auto: by the age of the commits"
    )
    lab: Path | None = Field(
        default=None, description="an Ansible inventory; unset: one guest on this machine"
    )
    state_dir: Path = Field(default_factory=lambda: Path(platformdirs.user_state_dir("perfbisect")))
    cache_dir: Path = Field(default_factory=lambda: Path(platformdirs.user_cache_dir("perfbisect")))
    lock_dir: Path = Field(
        default_factory=_lock_dir,
        description="for the locks of hosts and testbeds; one for a machine",
    )
    jobs: int | None = Field(default=None, ge=1, description="parallel compilers; unset: as many as CPUs")
    toolchain_mirror: str | None = Field(
        default=None, description="where archives of toolchains are: https://..., file:///..."
    )
    alpha: float = Field(
        default=0.05, ge=LEAST_ALPHA, lt=0.5, description="how often a proven culprit may be wrong"
    )


def find_settings_file(start: Path) -> Path | None:
    """Return the nearest perfbisect.toml in `start` or above it."""
    for folder in (start, *start.parents):
        if (folder / SETTINGS_FILE).is_file():
            return folder / SETTINGS_FILE
    return None


def load_settings(
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    start: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Merge file, environment and command line. None in `overrides`: the option is not given.

    Raises RequestError that names the file (or variable), the key, and the nearest known key.
    """
    environment = os.environ if environment is None else environment
    if config is not None and not config.is_file():
        raise RequestError(
            f"--config {config}: no such file",
            cure=f"name a settings file, or leave it out: {SETTINGS_FILE} is looked for upwards from here",
        )
    path = config if config is not None else find_settings_file((start or Path.cwd()).resolve())
    values: dict[str, Any] = {}
    if path is not None:
        values = load_toml(path, Settings).model_dump(exclude_unset=True)
        for key in values.keys() & set(_PATHS):
            if values[key] is not None:
                values[key] = path.resolve().parent / values[key].expanduser()
    values.update(_from_environment(environment))
    values.update({k: v for k, v in (overrides or {}).items() if v is not None})
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:

        def source(key: Key) -> str:
            given = (overrides or {}).get(key[0]) is not None
            return "the command line" if given else f"the variable {VARIABLE_PREFIX}{key[0].upper()}"

        raise refusal(error, Settings, source) from error
    paths = {
        key: value.expanduser().absolute()
        for key in _PATHS
        if isinstance(value := getattr(settings, key), Path)
    }
    return settings.model_copy(update=paths)


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    known = {f"{VARIABLE_PREFIX}{name.upper()}": name for name in Settings.model_fields}
    values = {}
    for variable, text in environment.items():
        if variable in known:
            if text:
                values[known[variable]] = text
        elif variable.startswith(VARIABLE_PREFIX) and (hint := nearest(variable, known)):
            # Other programs may use the prefix: only a name close to one of ours is surely a mistake.
            raise RequestError(f"unknown environment variable '{variable}'{hint}")
    return values
