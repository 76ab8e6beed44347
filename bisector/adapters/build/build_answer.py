"""A builder's answer after a build. The commit's programs ran there, so it may be anything."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from bisector.errors import InfrastructureError
from bisector.schemas.kernel.release import RUNNING_RELEASE

_LOG_BYTES_MAX = 64 << 20
"""How much of a log's end is kept: a log of all modules with every command in it has some ten MiB."""

_CONFIG_BYTES_MAX = 4 << 20
"""A .config has 300 KiB at most."""

_COUNT = "[0-9]{1,15}"
_SECONDS = r"|([0-9]{1,9}(\.[0-9]{0,12})?|\.[0-9]{1,12})(e[+-]?[0-9]{1,2})?"

_NUMBERS: Mapping[str, str] = {
    **dict.fromkeys(
        ("hits", "misses", "compiled", "free_kb", "text", "data", "bss", "image", "layout"), _COUNT
    ),
    **dict.fromkeys(("seconds", "cpu_seconds"), _SECONDS),
}
"""The facts that are read as numbers, and what their values look like."""

_FORMS: Mapping[str, str] = {
    "status": r"ok|failed|config-failed|refused|misconfigured|stale|not-linux|timed-out",
    "release": rf"({RUNNING_RELEASE})?",
    "build_id": r"([0-9a-f]{2}){0,64}",
    "binary": r"[0-9a-f]{64}",
    "packed": r"yes|no|unknown",
    "out": r"[0-9a-f]{1,64}",
    "sandbox": r"[a-z]+",
    **{name: form for name, form in _NUMBERS.items() if name != "layout"},  # which the order says
}
"""The facts of playbooks/roles/build/files/*.sh, and what their values look like."""

_OF_A_KERNEL = ("release", "build_id", "binary")


def check_answer(facts: Mapping[str, str], folder: Path, commit: str) -> dict[str, str]:
    """Return the facts that are known; the log is cut to the end of it where it is too long.

    folder: with what was sent, unpacked. Raises InfrastructureError for impossible values, which do not say
    whether an honest build of the commit would succeed.
    """
    known = {name: value for name, value in facts.items() if name in _FORMS}
    wrong = [name for name, value in known.items() if re.fullmatch(_FORMS[name], value) is None]
    ok = facts.get("status") == "ok"
    wrong += [name for name in ("status", *(_OF_A_KERNEL if ok else ())) if name not in known]
    wrong += [
        name for name in ("build.log", *(("image", "config") if ok else ())) if not _is_file(folder, name)
    ]
    config = folder / "config"
    if _is_file(folder, "config") and config.stat().st_size > _CONFIG_BYTES_MAX:
        wrong.append("config")
    if wrong:
        raise InfrastructureError(
            f"the build of {commit} gave an answer that cannot be: {', '.join(dict.fromkeys(wrong))}",
            cure="look whether its Makefiles disturb the build; 'perfbisect mark ID COMMIT skip' leaves it "
            "out",
        )
    _keep_end(folder / "build.log", _LOG_BYTES_MAX)
    return known


def numbers_are_numbers(facts: Mapping[str, str]) -> bool:
    """Return whether all facts that are read as numbers can be, where they came from another host."""
    return all(re.fullmatch(form, facts[name]) for name, form in _NUMBERS.items() if name in facts)


def number_of(facts: Mapping[str, str], name: str) -> float:
    """Return a fact that is a number; 0 where it is absent or none."""
    value = facts.get(name) or "0"
    return float(value) if re.fullmatch(_NUMBERS[name], value) else 0.0


def _is_file(folder: Path, name: str) -> bool:
    return (folder / name).is_file()


def _keep_end(path: Path, size: int) -> None:
    if path.stat().st_size > size:
        with path.open("rb") as file:
            file.seek(-size, os.SEEK_END)
            end = file.read()
        path.write_bytes(end)
