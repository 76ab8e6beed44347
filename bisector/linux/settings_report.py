"""Settings made on a machine for a workload, by the facts of a boot: 'setting.NAME.before', ..."""

from __future__ import annotations

from collections.abc import Mapping

_PREFIX = "setting."
_ABSENT = "absent"
_NOT_SET = "not set: "
_PARTS = ("before", "after", "error")
_TURBO, NO_TURBO = "turbo", "no_turbo"
"""Where Intel's driver runs, there is the second alone, which is 1 where turbo is off."""
_INVERSE = {"0": "1", "1": "0"}


def settings(facts: Mapping[str, str]) -> dict[str, str]:
    """Return each setting in words: 'powersave -> performance', or 'not set: ' and the reason."""
    out = {}
    for name in sorted({key.removeprefix(_PREFIX).rsplit(".", 1)[0] for key in facts if _is_setting(key)}):
        before, after, error = (facts.get(f"{_PREFIX}{name}.{part}", "") for part in _PARTS)
        if name == NO_TURBO:  # before 'turbo' by the alphabet, which is left alone then
            if before == _ABSENT:
                continue
            name, before, after = _TURBO, _INVERSE.get(before, before), _INVERSE.get(after, after)
        elif name in out:
            continue
        if error:
            out[name] = f"{_NOT_SET}{error}" + (f"; it is {after}" if after not in ("", _ABSENT) else "")
        elif _ABSENT in (before, after):
            out[name] = f"{_NOT_SET}there is no such setting here"
        else:
            out[name] = after if before == after else f"{before} -> {after}"
    return out


def unset(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the requested settings that could not be made, each with the reason in words."""
    return {name: words for name, words in settings(facts).items() if words.startswith(_NOT_SET)}


def _is_setting(key: str) -> bool:
    return key.startswith(_PREFIX) and key.rsplit(".", 1)[1] in _PARTS
