"""`perfbisect compare`: sets of samples side by side, from files, without any lab."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import asking, output
from bisector.interfaces.report import words

if TYPE_CHECKING:
    from bisector.core.compare import Comparison

Boots = list[list[float]]

_FORM = (
    'numbers (an empty line begins the next boot), or JSON: {"metric": [run, ...]}, where a list of lists '
    "means boots of runs"
)
_SPREAD_SHOWN = 0.02
"""As the kernel test robot does: a spread up to 2% is not worth ink."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(compare)


def compare(
    files: Annotated[
        list[Path], typer.Argument(metavar="BASE OTHER...", help="Files; - is the standard input.")
    ],
    metric: Annotated[str | None, typer.Option(help="Only this metric of the JSON files.")] = None,
    better: Annotated[str, typer.Option(help="Which way is better: lower or higher.")] = "lower",
    threshold: Annotated[str, typer.Option(help="The smallest change that matters, such as 5%.")] = "0%",
    unit: Annotated[str, typer.Option(help="Of the numbers, for the table.")] = "",
    alpha: Annotated[float, typer.Option(help="Intervals are at the level 1 - alpha.")] = 0.05,
    as_json: asking.Json = False,
) -> None:
    """Compare samples that you already have: what differs, by how much, and how far it can be believed.

    A file holds numbers, an empty line before those of the next boot, or JSON: {"metric": [run, ...]},
    where a list of lists means boots of runs. Runs of one boot are not independent: give boots apart.
    Without a significant difference the change is printed as ~.

    Examples:

      perfbisect compare old.txt new.txt --threshold 2%

      perfbisect compare old.json new.json --metric real --better lower --json
    """
    if len(files) < 2:
        raise RequestError("compare needs at least two files", cure="perfbisect compare old.txt new.txt")
    if better not in ("lower", "higher"):
        raise RequestError(f"--better '{better}' is not known", cure="lower or higher")
    if not 0 < alpha < 0.5:
        raise RequestError(f"--alpha {alpha:g} must lie between 0 and 0.5")
    limit = _limit(threshold)
    sets = [_read(path) for path in files]
    names = [name for name in sets[0] if metric in (None, name)]
    for path, found in zip(files[1:], sets[1:], strict=True):
        names = [name for name in names if name in found]
        if not names:
            wanted = f"the metric '{metric}'" if metric else "a metric"
            raise RequestError(
                f"{files[0]} and {path} have not {wanted} in common",
                details=f"{files[0]}: {', '.join(sets[0])}\n{path}: {', '.join(found)}",
            )
    from bisector.core.compare import compare as compare_sets

    labels = _labels(files)
    rows = [
        compare_sets(
            name,
            sets[0][name],
            found[name],
            unit=unit,
            better="lower" if better == "lower" else "higher",
            threshold=limit,
            alpha=alpha,
            labels=(labels[0], label),
        )
        for name in names
        for label, found in zip(labels[1:], sets[1:], strict=True)
    ]
    if as_json:
        import dataclasses

        output.facts([dataclasses.asdict(row) for row in rows])
        return
    print(table(rows))
    for warning in dict.fromkeys(w for row in rows for w in row.warnings):
        print(f"note: {warning}")


def table(rows: list[Comparison]) -> str:
    """Return the comparison for people."""
    header = ("METRIC", "BASE", "", "OTHER", "", "CHANGE", "VERDICT", "CHANCE OF WORSE")
    body = []
    for row in rows:
        change = words.percent(row.effect.estimate, 2) if row.significant else "~"
        interval = f"({words.percent(row.effect.low, 2)} .. {words.percent(row.effect.high, 2)})"
        body.append(
            (
                row.name,
                row.a.name,
                _level(row.a.mean, row.a.cv, row.unit),
                row.b.name,
                _level(row.b.mean, row.b.cv, row.unit),
                f"{change} {interval}",
                row.verdict,
                f"{100 * row.probability:.0f}%",
            )
        )
    return output.table(header, body)


def _level(mean: float, cv: float, unit: str) -> str:
    spread = f" ± {100 * cv:.0f}%" if cv > _SPREAD_SHOWN else ""
    return f"{words.number(mean)}{' ' + unit if unit else ''}{spread}"


def _labels(files: list[Path]) -> list[str]:
    """Names without folder and suffix where they stay different, else the paths."""
    short = [f.stem if str(f) != "-" else "stdin" for f in files]
    return short if len(set(short)) == len(short) else [str(f) for f in files]


def _limit(text: str) -> float:
    try:
        number = float(text.removesuffix("%"))
    except ValueError as error:
        raise RequestError(f"--threshold '{text}' is not a percentage", cure="such as 5%") from error
    if not text.endswith("%"):
        raise RequestError(f"--threshold '{text}' has no unit", cure=f"write '{text}%': percent of the base")
    if not 0 <= number < math.inf:
        raise RequestError(f"--threshold '{text}' must be zero or more")
    return number / 100


def _read(path: Path) -> dict[str, Boots]:
    """Return metric -> boots of runs. Raises RequestError that says what was expected."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: cannot be read", details=str(error)) from error
    if text.lstrip().startswith(("{", "[")):
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise RequestError(f"{path}:{error.lineno}: not valid JSON", details=error.msg) from error
        found = (
            {name: _boots(path, value) for name, value in data.items()} if isinstance(data, dict) else None
        )
        result = found if found is not None else {"value": _boots(path, data)}
    else:
        result = {"value": _numbers(path, text)}
    for name, boots in result.items():
        if not any(math.isfinite(v) for boot in boots for v in boot):
            raise RequestError(f"{path}: '{name}' has no finite number", cure=f"expected {_FORM}")
    if not result:
        raise RequestError(f"{path}: there is nothing in it", cure=f"expected {_FORM}")
    return result


def _boots(path: Path, value: Any) -> Boots:  # noqa: ANN401 - whatever the JSON holds
    def numbers(values: Any) -> list[float]:  # noqa: ANN401 - the same
        if not isinstance(values, list) or not all(
            isinstance(v, int | float) and not isinstance(v, bool) for v in values
        ):
            raise RequestError(f"{path}: a list of numbers was expected", cure=f"expected {_FORM}")
        return [float(v) for v in values]

    if isinstance(value, list) and value and all(isinstance(part, list) for part in value):
        return [numbers(part) for part in value]
    return [numbers(value)]


def _numbers(path: Path, text: str) -> Boots:
    boots: Boots = [[]]
    for line_number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            if boots[-1] and not raw.strip():
                boots.append([])
            continue
        for word in line.split():
            try:
                boots[-1].append(float(word))
            except ValueError as error:
                raise RequestError(
                    f"{path}:{line_number}: '{word}' is not a number", cure=f"expected {_FORM}"
                ) from error
    return [boot for boot in boots if boot]
