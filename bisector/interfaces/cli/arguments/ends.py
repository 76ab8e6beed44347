"""The two ends of a request, by name (--good, --bad) or by age as git bisect has them, too (--old, --new)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli.arguments import completion
from bisector.model.goal import TERMS


def by_age() -> dict[str, Any]:
    """Return the options for the ends by age: name -> option."""
    return {
        name: typer.Option(
            f"--{name}",
            metavar="REV",
            help=f"The {age} end, whichever it is: --good or --bad.",
            show_default=False,
            autocompletion=completion.commits,
        )
        for name, age in (("old", "older"), ("new", "newer"))
    }


def with_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with --old and --new as the ends that they mean. Raises RequestError."""
    terms = TERMS["fix" if values["find"] == "fix" else "regression"]
    found = dict(values)
    for age, name in (("old", terms.old), ("new", terms.new)):
        commit = found.pop(age)
        if commit and found[name]:
            raise RequestError(
                f"--{age} and --{name} are the same end", cure=f"give one of them; here --{age} is --{name}"
            )
        found[name] = found[name] or commit
    example = "--bad v6.1 --good v6.2 --find fix" if terms.old == "bad" else "--good v6.1 --bad v6.2"
    for name in (terms.old, terms.new):
        if not found[name]:
            raise RequestError(
                f"--{name} is missing",
                cure=f"name both ends: perfbisect start {example} --workload pipe-test",
            )
    return found
