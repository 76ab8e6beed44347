"""`perfbisect profile`: where two kernels spend their time, side by side."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bisector.errors import RequestError, nearest
from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import completion
from bisector.interfaces.cli.arguments.number_options import parse_percentage, whole
from bisector.interfaces.cli.comparisons import compare_inputs
from bisector.interfaces.cli.terminal import write_document
from bisector.schemas.documents.document import NO_SUCH_FILE, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisector.linux.annotated_code import AnnotatedFunction
    from bisector.linux.call_graph import Branch
    from bisector.linux.profile import Profile


def profile(
    a: Annotated[
        str, typer.Argument(metavar="[LABEL=]A", help="First profile; - for stdin, or BISECTION:REV.")
    ],
    b: Annotated[str, typer.Argument(metavar="[LABEL=]B", help="Profile of the second kernel.")],
    top: Annotated[int, whole(1, 100_000, "Lines of each table.")] = 30,
    tree: Annotated[
        list[str] | None, typer.Option(help="Show who calls this symbol, and what it calls; repeatable.")
    ] = None,
    annotate: Annotated[
        list[str] | None,
        typer.Option(help="Show this function's instructions with their executions; repeatable."),
    ] = None,
    least: Annotated[str, typer.Option(help="Leave out branches of trees below this share.")] = "0.1%",
    flame: Annotated[
        Path | None, typer.Option(help="Write a differential flame graph (SVG) to this file.")
    ] = None,
    commit: Annotated[
        str | None, completion.commit_option("Mark the functions that this commit changes.")
    ] = None,
    repo: options.Repo = None,
    trust_repo: options.TrustRepo = False,
    as_json: options.Json = False,
    html: options.Html = None,
) -> None:
    """Show where two kernels spend their time, side by side: differences, and which of them may be chance.

    Inputs: perf.data (by perf itself; symbols of another kernel from a file 'kallsyms' beside it), the
    output of perf script, perf report --stdio and opreport -l, folded stacks, and ftrace's folder
    trace_stat, which counts calls. BISECTION:REV is the recording of a commit by the monitor counters, else
    perf-record, else ftrace.

    Profiles that emulated guests counted are exact: instructions of each function, which add up to the
    effect, its callers and how often it is called. --annotate shows a function instruction by instruction,
    from the kernel that was counted, if this machine's cache still has it.

    Trees and flame graphs need call chains: perf record -g, or what emulated x86_64 guests counted.

    Shares are of each profile's own total. * marks functions that the commit changes, ~ what may be chance.

    Examples:

      perfbisect profile old/perf.data new/perf.data

      perfbisect profile 2.6.18=old.txt 2.6.30=new.txt --top 42

      perfbisect profile pipe-test-3f2a:v6.1 pipe-test-3f2a:v6.2

      perfbisect profile old.data new.data --tree kmem_cache_alloc --flame diff.svg --commit v6.2

      perfbisect profile old.data new.data --html profile.html

      perfbisect profile pipe-test-3f2a:v6.1 pipe-test-3f2a:v6.2 --annotate pipe_write
    """
    if html is not None and as_json:
        raise RequestError("--html and --json exclude each other", cure="give one of them")
    if html is not None and annotate:
        raise RequestError("--html and --annotate exclude each other", cure="give one of them")
    if annotate and tree and not as_json:
        raise RequestError(
            "--annotate and --tree exclude each other as text", cure="give one of them, or both with --json"
        )
    if html is not None and flame is not None and html.absolute() == flame.absolute():
        raise RequestError(f"--html and --flame both name {flame}", cure="name two files")
    from bisector.linux.exact_profile import compare_exactly
    from bisector.linux.profile import compare_profiles
    from bisector.report.profiles import annotated_table, exact_table, json_profile, profile_table

    share = _smallest_share(least)
    for option, out in (("--html", html), ("--flame", flame)):
        compare_inputs.refuse_overwriting(option, out, (_split(a)[1], _split(b)[1]))
    first, second = _read_two(a, b)
    touched = (
        _changed_functions(repo, commit, trust_repo=trust_repo) if commit is not None else frozenset[str]()
    )
    found = compare_profiles(first, second, sorted(touched))
    exact = compare_exactly(first, second, touched) if first.exact and second.exact else None
    if tree or flame:
        _require_stacks(first, second)
    trees = _trees(first, second, tree or (), share)
    annotated = _annotated(first, second, annotate) if annotate else []
    if flame is not None:
        from bisector.app.output_file import write_output_file
        from bisector.report.profiles import flame_graph

        write_output_file(flame, flame_graph.render(first, second, touched))
        output.print_note(f"flame graph written to {flame}")
    if html is not None:
        _write_page(html, first, second, touched, top)
        return
    if as_json:
        write_document(json_profile.render(found, trees, exact, annotated))
        return
    if annotated:
        text = annotated_table.render(annotated)
    else:
        text = exact_table.render(exact, top, trees) if exact else profile_table.render(found, top, trees)
    sys.stdout.write(text)


def _trees(
    first: Profile, second: Profile, names: Sequence[str], share: float
) -> list[tuple[str, list[Branch], list[Branch]]]:
    """Return each symbol with its callers and what it calls. share: the smallest branch, of the total."""
    from bisector.linux.call_graph import callees, callers

    return [
        (name, callers(first, second, name, share), callees(first, second, name, share)) for name in names
    ]


def _write_page(html: Path, first: Profile, second: Profile, touched: frozenset[str], top: int) -> None:
    from bisector.app.output_file import write_output_file
    from bisector.report.html import profile_section

    write_output_file(html, profile_section.render(profile_section.TwoProfiles(first, second, touched), top))
    output.print_note(f"profiles written to {html}")


def _annotated(first: Profile, second: Profile, names: Sequence[str]) -> list[AnnotatedFunction]:
    """Return functions of both kernels; one that only one of them has is shown of that."""
    from bisector.app.import_results import annotated_functions

    pairs = list(zip(annotated_functions(first, names), annotated_functions(second, names), strict=True))
    known = _functions(first, second)
    for a, b in pairs:
        if a.known or b.known:
            continue
        if a.name in known:
            raise RequestError(
                f"'{a.name}' is not in the kernel's own text: its code cannot be shown",
                details="--annotate reads the kernel's image. Code of modules, of programs and what the "
                "kernel writes itself is counted by function alone.",
                cure="name a function of the kernel's own text",
            )
        raise RequestError(
            f"neither kernel has a function '{a.name}'{nearest(a.name, known)}",
            cure="name a function of the profile's table",
        )
    return [one for pair in pairs for one in pair]


def _functions(*profiles: Profile) -> set[str]:
    return {symbol.name for profile in profiles for symbol in profile.own}


def _require_stacks(first: Profile, second: Profile) -> None:
    """Raise RequestError where a profile has no call chains."""
    without = [one for one in (first, second) if not one.stacks]
    if not without:
        return
    why = "".join(f"{one.name}: {one.no_stacks}\n" for one in without if one.no_stacks)
    if any(one.exact for one in without):
        cure = "count again in x86_64 guests of kernels that keep their symbols: --monitor counters"
    else:
        cure = "record with 'perf record -g'"
    raise RequestError(
        f"{' and '.join(one.name for one in without)}: no call chains, which trees and flame graphs need",
        details=why,
        cure=cure,
    )


def _read_two(a: str, b: str) -> tuple[Profile, Profile]:
    """Return two profiles with different names. Raises RequestError if they cannot be compared."""
    compare_inputs.refuse_two_inputs([a, b])
    (label_a, place_a), (label_b, place_b) = _split(a), _split(b)
    first, second = _read(label_a, place_a), _read(label_b, place_b)
    if first.name == second.name:
        first, second = replace(first, name=place_a), replace(second, name=place_b)
    if not (first.own and second.own) and not (first.calls and second.calls):
        raise RequestError(
            "one profile holds shares, the other one counts of calls", cure="give two recordings of one kind"
        )
    return first, second


def _split(argument: str) -> tuple[str | None, str]:
    label, equals, place = argument.partition("=")
    if not equals or "/" in label or Path(argument).exists():
        return None, argument
    return label, place


def _read(label: str | None, place: str) -> Profile:
    from bisector.app.import_results import read_profile

    is_input = compare_inputs.is_input(place)
    stored = None if is_input else compare_inputs.parse_stored_commit(place)
    if stored is None and not is_input:
        raise RequestError(
            f"{shortened(place)}: {NO_SUCH_FILE}",
            cure="name a recording, or a commit that a bisection has measured as BISECTION:REV",
        )
    found = read_profile(place) if stored is None else ask.operations().recording(*stored)
    given = label if label is not None or stored is None else stored[1]
    return found if given is None else replace(found, name=given)


def _smallest_share(text: str) -> float:
    """Return a share such as '0.1%' as a fraction. Raises RequestError."""
    value = parse_percentage("--least", text)
    if not 0 <= value <= 1:
        raise RequestError(f"--least: '{text}' is not between 0% and 100%", cure="write for example '0.1%'")
    return value


def _changed_functions(repo: Path | None, commit: str, *, trust_repo: bool) -> frozenset[str]:
    """Return the functions that a commit changes; a note where it changes none."""
    from bisector.app.import_results import touched_functions

    found = touched_functions(options.make_wiring(repo=repo, trust_repo=trust_repo, remote=True), commit)
    if not found:
        output.print_note(f"note: {commit} changes no function of a C source")
    return found
