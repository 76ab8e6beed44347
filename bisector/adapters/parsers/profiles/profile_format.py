"""Profiles in any form: the profiler is recognised by the content. perf itself reads perf.data files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bisector.adapters.parsers.input_text import first_bytes, malformed, read_standard_input, read_text
from bisector.adapters.parsers.profiles import (
    counted_profile,
    folded_stacks,
    function_listings,
    perf_script,
)
from bisector.adapters.system.command import MAX_OUTPUT_BYTES, run_command
from bisector.errors import InfrastructureError
from bisector.linux.profile import Profile
from bisector.schemas.counted_functions import NAME as COUNTED
from bisector.schemas.documents.document import exists, why_no_file

FORMS = (
    "perf.data (read by perf itself)",
    "the output of perf script, perf report --stdio, opreport -l",
    "ftrace's trace_stat: the folder, or its files one after the other",
    "folded stacks: task;outer;inner 42",
    "what the monitor counters kept: the folder that has functions.json",
)
_MAGIC = (b"PERFILE2", b"2ELIFREP")
_PERF_SECONDS = 600.0
"""perf resolves the symbols of a million samples in some minutes."""


def read(place: str) -> Profile:
    """Return the profile in a file or on standard input ('-'). Raises RequestError, InfrastructureError."""
    if place == "-":
        return replace(_text(read_standard_input(), "stdin"), name="stdin")
    path = Path(place)
    if not exists(path):
        raise malformed(place, why_no_file(path), "; ".join(FORMS))
    if path.is_dir():
        found = _folder(path)
    elif first_bytes(path, 8) in _MAGIC:
        found = _recording(path)
    else:
        found = _text(read_text(path), str(path))
    return replace(found, name=path.name)


def _folder(folder: Path) -> Profile:
    """Read perf.data in a folder, as perf itself looks for it, or ftrace's functionN, one for each CPU.

    What perf script printed on the machine that recorded is taken before the recording: it has all symbols.
    """
    if (folder / COUNTED).exists():
        return counted_profile.read(folder / COUNTED)
    if (folder / perf_script.SCRIPT).exists():
        return _text(read_text(folder / perf_script.SCRIPT), str(folder))
    if (folder / "perf.data").exists():
        return _recording(folder / "perf.data")
    cpus = sorted(p for p in folder.glob("function*") if p.name.removeprefix("function").isdigit())
    if not cpus:
        raise malformed(
            str(folder), "there is no perf.data and no function0 in this folder", "name the file itself"
        )
    return function_listings.traced("\n".join(read_text(p) for p in cpus), str(folder))


def _recording(path: Path) -> Profile:
    """Let perf read its recording; symbols of another kernel come from a file `kallsyms` beside it."""
    command: list[str | Path] = ["perf", "script", "-f", "-i", path, "-F", perf_script.FIELDS]
    symbols = path.parent / "kallsyms"
    if symbols.is_file():
        command += ["--kallsyms", symbols]
    try:
        done = run_command(command, timeout=_PERF_SECONDS, max_bytes=MAX_OUTPUT_BYTES, check=False)
    except InfrastructureError as error:
        raise malformed(
            str(path),
            "reading a recording needs perf on this machine",
            "apt install linux-perf, or give what 'perf script' printed where it was recorded",
            error.message,
        ) from error
    if done.code != 0:
        raise malformed(
            str(path),
            "perf cannot read this recording",
            "record it again: perf record -g",
            "\n".join(done.output.splitlines()[-5:]),
        )
    return perf_script.read(done.output, str(path))


def _text(text: str, where: str) -> Profile:
    if not text.strip():
        raise malformed(where, "there is nothing in it", "; ".join(FORMS))
    if function_listings.looks_traced(text):
        return function_listings.traced(text, where)
    if function_listings.looks_oprofiled(text):
        return function_listings.oprofiled(text, where)
    if folded_stacks.looks_like(text):
        return folded_stacks.read(text, where)
    if perf_script.looks_like(text):
        return perf_script.read(text, where)
    if function_listings.looks_reported(text):
        return function_listings.reported(text, where)
    raise malformed(where, "this is not a profile in a known format", "; ".join(FORMS))
