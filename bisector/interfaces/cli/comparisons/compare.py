"""`perfbisect compare`: kernels side by side, from what was measured, without any lab."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion, number_options
from bisector.interfaces.cli.comparisons import compare_inputs
from bisector.interfaces.cli.terminal import write_document
from bisector.schemas.documents.document import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisector.model.goal import Direction
    from bisector.stats.comparison_table import ComparisonTable
    from bisector.stats.samples import SampleSet

Format = Literal["people", "mmtests", "perf-stat", "robot", "runs", "json"]


def compare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="[LABEL[@TESTBED]=]BASE OTHER...",
            help="Files, result folders, - for standard input, or commits that a bisection measured.",
        ),
    ],
    form: Annotated[
        Format,
        typer.Option("--format", metavar="FORM", help="people, mmtests, perf-stat, robot, runs or json."),
    ] = "people",
    metric: Annotated[list[str] | None, typer.Option(help="Only this metric; repeatable.")] = None,
    better: Annotated[
        list[str] | None,
        typer.Option(
            help="lower or higher, for all or as METRIC=higher; repeatable. [default: by name, unit]"
        ),
    ] = None,
    threshold: Annotated[str, typer.Option(help="The smallest change that matters, such as 5%.")] = "0%",
    unit: Annotated[str, typer.Option(help="The unit of numbers without one.")] = "",
    alpha: Annotated[
        float, number_options.option(number_options.ALPHA, "Intervals are at the level 1 - alpha.")
    ] = 0.05,
    bisection: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The bisection that measured the commits. [default: the latest]",
            autocompletion=completion.bisections,
        ),
    ] = None,
    same: Annotated[
        bool, typer.Option("--same-kernel", help="All inputs are one kernel: show its run-to-run variation.")
    ] = False,
    as_json: options.Json = False,
    html: options.Html = None,
) -> None:
    """Compare kernels by measured results: what differs, by how much, with which confidence.

    Inputs: numbers (an empty line begins the next boot), 'name: value' lines, JSON {"metric": [run, ...]}
    (a list of lists: boots of runs), the output of time, of perf stat (text or -j), of fio, hyperfine,
    Google Benchmark and pytest-benchmark (JSON) and of size, an MMTests or lkp result folder, a vmlinux (its
    sizes), and commits: REV of the latest bisection, or BISECTION:REV.

    Runs of one boot are not independent: separate the boots. Inputs with the same LABEL are one kernel, in
    more boots or on another TESTBED. The same input twice compares a kernel with itself, in two halves.
    Without a significant difference the change is printed as ~.

    Examples:

      perfbisect compare old.txt new.txt --threshold 2%

      perfbisect compare rt-00 rt-16 --format mmtests

      perfbisect compare BWC@westmere=bwc.txt JL@westmere=jl.txt --format perf-stat

      perfbisect compare old.json new.json --metric real --better lower --json

      perfbisect compare old.txt new.txt --html comparison.html
    """
    if html is not None and (as_json or form != "people"):
        raise RequestError("--html and another form exclude each other", cure="give one of them")
    smallest, directions = _threshold(threshold), _directions(better or [])
    from bisector.report import comparison

    compare_inputs.refuse_overwriting("--html", html, map(compare_inputs.place_of, sources))
    columns, itself = compare_inputs.read_columns(sources, bisection, unit)
    if len(columns) < 2:
        raise RequestError(
            "compare needs at least two kernels",
            cure="perfbisect compare old.txt new.txt; the same file twice compares it with itself",
        )
    columns = compare_inputs.with_directions(columns, directions)
    compare_inputs.require_metrics(columns, metric or ())
    found = _table(columns, metric or (), alpha, smallest, same=same or itself)
    if html is not None:
        from bisector.app.output_file import write_output_file
        from bisector.report.html import comparison_page

        write_output_file(html, comparison_page.render(found))
        output.print_note(f"comparison written to {html}")
        return
    as_json = as_json or form == "json"
    write = write_document if as_json else sys.stdout.write
    write(comparison.render(found, "json" if as_json else form, output.terminal_width()))


def _table(
    columns: Sequence[Sequence[SampleSet]],
    metrics: Sequence[str],
    alpha: float,
    threshold: float,
    *,
    same: bool,
) -> ComparisonTable:
    """Compare the columns. Raises RequestError, with the metrics of each, where none can be compared."""
    from bisector.stats import comparison_table

    try:
        return comparison_table.build(columns, metrics=metrics, alpha=alpha, threshold=threshold, same=same)
    except ValueError as error:
        raise RequestError(
            str(error),
            details="\n".join(
                f"{shortened(c[0].name)}: {compare_inputs.listed([n for s in c for n in s.series])}"
                for c in columns
            ),
            cure="give results with a metric of one name that has finite numbers",
        ) from error


def _directions(given: list[str]) -> dict[str, Direction]:
    """Return metric -> direction; the empty name stands for every metric."""
    out: dict[str, Direction] = {}
    for text in given:
        name, _, way = text.rpartition("=")
        if way not in ("lower", "higher"):
            raise RequestError(
                f"--better: '{text}' is not a direction", cure="write lower, higher, or METRIC=higher"
            )
        if name in out:
            of = f" for '{name}'" if name else ""
            raise RequestError(f"--better says {out[name]} and {way}{of}", cure="give one of them")
        out[name] = "lower" if way == "lower" else "higher"
    return out


def _threshold(text: str) -> float:
    """Return a threshold such as '5%' as a fraction. Raises RequestError."""
    from bisector.schemas.workload.metric import PERCENT_RANGE

    number = number_options.parse_percentage("--threshold", text)
    if number < 0:
        raise RequestError(f"--threshold: '{text}' is negative", cure="write for example '5%'")
    if 100 * number > PERCENT_RANGE[1]:
        raise RequestError(
            f"--threshold: '{text}' is above {PERCENT_RANGE[1]:g}%", cure="write for example '5%'"
        )
    return number
