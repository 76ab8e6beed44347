"""Manual pages of the commands, in the macros of man(7), made from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer.main

from bisector.interfaces.cli.application import application
from bisector.interfaces.cli.arguments.help_text import write_parameters


class _Sections:
    """Takes what a command writes into its help, as Click's formatter does."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def section(self, title: str) -> Iterator[None]:
        self.lines.append(f".SH {title.upper()}")
        yield

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        for name, text in rows:
            self.lines += [".TP", rf"\fB{escape(name.rstrip())}\fR", escape(text)]


def escape(text: str) -> str:
    """Return a text for a line of roff: no macro at its beginning, dashes and backslashes as they are."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{plain}" if plain.startswith(".") else plain


def man_pages() -> dict[str, str]:
    """Return name of a file -> its page, for the program and all of its commands."""
    root: Any = typer.main.get_command(application())
    context = root.make_context("perfbisect", ["list"], resilient_parsing=True)
    return dict(_pages(root, context, ("perfbisect",)))


def _pages(command: Any, context: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    below = {
        name: (one, type(context)(one, info_name=name, parent=context))
        for name, one in getattr(command, "commands", {}).items()
    }
    yield f"{'-'.join(path)}.1", _page(command, context, path, list(below))
    for name, (one, inner) in below.items():
        yield from _pages(one, inner, (*path, name))


def _page(command: Any, context: Any, path: tuple[str, ...], below: Sequence[str]) -> str:
    name = "-".join(path)
    first, *rest = re.sub("\b\n", "", command.help or "").strip().split("\n\n")
    sections = _Sections()
    write_parameters(command, context, sections)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{escape(name.upper())}" "1" "" "perfbisect" "perfbisect"',
        ".SH NAME",
        rf"{escape(name)} \- {escape(_sentence(first))}",
        ".SH SYNOPSIS",
        rf"\fB{escape(' '.join(path))}\fR {escape(usage)}",
        ".SH DESCRIPTION",
        escape(" ".join(first.split())),
        *_paragraphs(rest),
        *sections.lines,
    ]
    others = [f"{name}-{one}" for one in below] or ["-".join(path[:-1])]
    lines += [".SH SEE ALSO", ", ".join(rf"\fB{escape(one)}\fR(1)" for one in others)]
    return "\n".join(lines) + "\n"


def _paragraphs(parts: Sequence[str]) -> Iterator[str]:
    examples = False
    for part in parts:
        if re.fullmatch("Examples?:", part.strip()):
            examples = True
            yield ".SH EXAMPLES"
        elif part.startswith(("  ", "* ")):
            yield from (".PP", ".nf", *map(escape, part.splitlines()), ".fi")
        else:
            if examples:  # what follows them belongs to the description again
                yield ".SH NOTES"
            examples = False
            yield from (".PP", escape(" ".join(part.split())))


def _sentence(text: str) -> str:
    """Return a first sentence as the index of pages has it: a small letter first, no stop."""
    plain = " ".join(text.split()).split(". ")[0].rstrip(".")
    return plain[:1].lower() + plain[1:]
