"""The filters of a machine's perfbisect_environment: 'settings_lines', lines 'NAME PLACE VALUE' for host.sh,
and 'settings_of_boots', what only a boot can have.

What a setting is, and where a kernel has it, is known to perfbisect: Ansible must run in its environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ansible.errors import AnsibleFilterError

_EACH_BOOT = ("caches", "isolated", "kaslr")
"""What a boot has or has not; nothing that stays set."""


def settings_lines(environment: Mapping[str, object]) -> str:
    """Return the lines. Raises AnsibleFilterError for an unknown setting or value."""
    try:
        from pydantic import ValidationError

        from bisector.adapters.agent.payload import settings_text
        from bisector.schemas.host_settings import HostSettings
        from bisector.schemas.refusal import refusal
    except ImportError as error:
        raise AnsibleFilterError(f"run the ansible-playbook of perfbisect's environment: {error}") from error
    try:
        made = HostSettings.model_validate(dict(environment)).settings()
    except ValidationError as error:
        place = "perfbisect_environment"
        told = refusal(error, HostSettings, lambda _: place, described_in="workloads/README.md")
        raise AnsibleFilterError(f"{told.message}. {told.cure}") from error
    return settings_text({name: value for name, value in made.items() if name not in _EACH_BOOT})


def settings_of_boots(environment: Mapping[str, object]) -> list[str]:
    """Return a line about each setting that cannot be made by hand."""
    return [
        f"{name}: not set by hand, each boot of a trial has it" for name in _EACH_BOOT if name in environment
    ]


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, object]], object]]:
        """Return the filters by their names."""
        return {"settings_lines": settings_lines, "settings_of_boots": settings_of_boots}
