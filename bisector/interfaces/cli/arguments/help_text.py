"""The help of a command: arguments first, then its options in groups that every command shares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MOST_UNGROUPED = 8
"""Options that a reader takes in at once: a command with no more of them shows them in one list."""

_NAME_CHARACTERS = 30
"""Width of the column of names; a longer name has a line of its own."""

_SENTENCE_CHARACTERS = 300
"""No first sentence of a help text is longer; Click would cut it to one line."""

GROUPS: Mapping[str, str] = {
    "Commits": "--good --bad --old --new --find --repo --kernels --trust-repo --rev --commit --skip "
    "--first-parent --priors --commits --history --culprits --effect --background --fork-offset --untestable "
    "--broken-stretch --same-binary --branch --reference",
    "When": "--cron --time-zone",
    "Workload and decision": "--workload --workloads --run --higher-is-better --param --metric --threshold "
    "--alpha --better --unit --same-kernel --clock --scan --runs --boots --bisection",
    "Kernels": "--recipe --apply --with-fix --layout --build-ahead --print-plan --install",
    "Machines": "--testbed --host --boot --builder --lab --monitor --testbeds --testbed-spread --jobs",
    "Noise": "--noise --run-noise --boot-noise --build-noise --drift --samples",
    "Limits": "--max-hours --max-builds --max-runs --max-cost --cost --trials --seed --budget",
    "Queue": "--detach --priority --notify",
}
"""Title -> options, whatever the command; all others come last, as 'Other options'."""

_TITLES = {option: title for title, options in GROUPS.items() for option in options.split()}


def write_parameters(command: Any, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Typer's
    """Write the arguments and options of a command."""
    parameters = [one for one in command.get_params(ctx) if not one.hidden]
    options = [one for one in parameters if one.param_type_name == "option"]
    grouped = len(options) > _MOST_UNGROUPED
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{title: [] for title in GROUPS}}
    for one in parameters:
        last = "Other options" if grouped else "Options"
        title = _TITLES.get(one.opts[0], last) if grouped else last
        if one.param_type_name == "argument":
            title = "Arguments"
        sections.setdefault(title, []).append(help_record(one, ctx))
    lengths = [len(name) for rows in sections.values() for name, _ in rows]
    width = max((length for length in lengths if length <= _NAME_CHARACTERS), default=0)
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def write_commands(group: Any, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Typer's
    """Write the commands of a group, each with the whole first sentence of its help."""
    commands = [group.get_command(ctx, name) for name in group.list_commands(ctx)]
    with formatter.section("Commands"):
        formatter.write_dl(
            [(one.name, one.get_short_help_str(limit=_SENTENCE_CHARACTERS)) for one in commands]
        )


def help_record(parameter: Any, ctx: Any) -> tuple[str, str]:  # noqa: ANN401 - Typer's
    """Return how a parameter is written, and what it means; types of Python have no place in either."""
    name, text = parameter.get_help_record(ctx)
    if parameter.param_type_name == "argument":
        name = parameter._rich_display_name()
    name = re.sub(r"<list\[(\w+)\]>", lambda match: f"<{match[1].lower()}>", name).replace("<str>", "<text>")
    return name, re.sub(r"\s+\[", " [", text)
