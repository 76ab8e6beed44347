"""What `--skip` may say, of the commits of a repository and of listed kernels alike."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

from bisector.errors import RequestError
from bisector.model.commit_graph import short_name


def parse_skip(text: str) -> tuple[str, str]:
    """Return the names before and after the dots of 'A..B'; of a single 'B' the first is empty.

    A range leaves out A and what is before it, as git's do. Raises RequestError for half a range and for
    three dots.
    """
    first, dots, last = text.partition("..")
    if not dots:
        return "", text
    if last.startswith("."):
        raise RequestError(f"--skip {text}: a range has two dots", cure=f"--skip {first}..{last[1:]}")
    if not (first and last):
        raise RequestError(f"--skip '{text}' is not a range A..B", cure="name both of its ends")
    return first, last


def refuse_empty_range(skipped: Collection[str], first: str, last: str) -> None:
    """Raise RequestError where a range A..B holds nothing: its ends are turned round, or one too early."""
    if first and not skipped:
        raise RequestError(
            f"--skip {first}..{last} is empty: '{first}' is not before '{last}'",
            cure=f"--skip {last} for one commit; --skip {last}..{first} for those after it",
        )


def refuse_skipped_ends(skipped: Container[str], ends: Mapping[str, str], unit: str) -> None:
    """Raise RequestError where an end is skipped. ends: full ids by their term; unit: what an end is."""
    for name, end in ends.items():
        if end in skipped:
            raise RequestError(
                f"--skip covers the {name} end, which must be measured",
                details=short_name(end),
                cure=f"skip less, or choose another {unit} for --{name}",
            )
