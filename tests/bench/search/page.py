"""RESULTS.md: everything that is kept of the benchmarks of the search, each number with its commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bisector.simulation.summary import share
from tests.bench.search import tables
from tests.bench.search.grid import cells

Line = dict[str, Any]
Kept = Mapping[tuple[str, str], Line]

HEAD = """# What the benchmarks of the search measured

Written by `python -m tests.bench.search.kept` from `results.jsonl`; not edited by hand. *At* is the last
commit that changed the measured code. Costs, runs, boots and answers do not depend on how busy the machine
is; milliseconds do, and these were taken on two busy cores. Cost: build 20, boot 5, run 1. Nothing is told
but threshold (half the effect where nothing else is said), direction and alpha = 5%. What the cells are and
how to measure them: [README.md](README.md)."""
EQUAL_BENCHES = ("equal ends", "equal parent", "equal history")
EQUAL = """## Two equal commits

`equal_ends`: how often two equal commits are said to differ, at any look, by families of noise. *Ends*: by
the verification, at alpha = 5%. *Parent*: by the certificate of a first suspect, at its share of it (3%).
*History*: by a whole search of 16 equal commits under an instruction clock whose boots do not repeat."""


def render(kept: Kept) -> str:
    """Return the page."""
    order = {c.name: i for i, c in enumerate(cells())}
    grid = sorted(
        (x for (bench, _), x in kept.items() if bench in ("grid", "rivals")),
        key=lambda x: (order.get(x["cell"], len(order)), x["cell"], x["bench"]),
    )
    parts = [HEAD, tables.markdown(grid)]
    parts.append(equal_commits(kept))
    own = {"grid", "rivals", *EQUAL_BENCHES}
    parts += [_shown(kept, bench) for bench in sorted({b for b, _ in kept} - own)]
    return "\n\n".join(filter(None, parts)) + "\n"


IN_WORDS = {
    "centre d=1": "runs, as much as the effect",
    "d 0.5": "runs, twice the effect",
    "d 2": "runs, half of the effect",
    "n 16384": "runs, as much as the effect; 16,384 commits",
    "noise t3": "runs, with heavy tails",
    "noise ar1": "runs that follow each other",
    "noise bimodal": "boots in two modes that runs hardly show",
    "boot/run noise 0.5": "boots, half of the effect",
    "boot/run noise 1": "boots, as much as the effect",
    "modes of boots 3:7, two effects apart": "boots in two modes, two effects apart",
    "modes of boots three": "boots in three modes",
    "effect shown in 50% of boots": "a change that half of the boots show",
    "effect shown in 20% of boots": "a change that a fifth of the boots shows",
    "build effect 0.25": "binaries of equal code, a quarter of the effect",
    "build effect 0.5": "binaries, half of the effect",
    "drift walk": "a testbed that drifts",
    "testbeds 4": "four testbeds",
    "2 testbeds effect on one": "two testbeds of which one shows the change",
    "untestable 30%": "30% of the commits do not build or boot",
    "untestable stretch of 8 with forks": "eight that cannot be tested, which branches leave",
    "history branched": "a history with branches",
    "background 0.5": "each commit changes a little",
    "culprits 0": "no culprit",
    "culprits 2 same sign": "two culprits",
    "culprits 4 on branches of 24 commits, d=50": "four culprits of 24 commits, on branches",
    "culprits 2 opposite": "a loss and half of it back",
    "culprits regress, fix, regress": "regress, fix, regress, with `--scan`",
    "culprits 30 of a quarter of the threshold, d=4": "30 changes of a quarter of the threshold",
}
"""The cells that the documentation tells of, by what scatters or is special there."""


def in_words(kept: Kept) -> str:
    """Return the table of the documentation: the cells of IN_WORDS, and the sum over all cells."""
    measured = {x["cell"]: x for x in of_bench(kept, "grid") if x["ours"]}
    rows = [_in_words(text, [measured[cell]]) for cell, text in IN_WORDS.items() if cell in measured]
    rows.append(_in_words(f"all {len(measured)} cells", list(measured.values())))
    head = ["what scatters, or is special", "right", "false claims", "mean cost", "commit"]
    return tables.table(head, rows)


def _in_words(text: str, lines: list[Line]) -> list[str]:
    def total(key: str, part: str) -> int:
        return sum(int(line["ours"][key][part]) for line in lines)

    right = f"{total('success_with_sets', 'count')} of {total('success_with_sets', 'of')}"
    wrong = f"{total('wrong_claims', 'count')} of {total('wrong_claims', 'of')}"
    if len(lines) > 1:
        return [text, right, wrong, "", ""]
    return [text, right, wrong, f"{lines[0]['ours']['cost']['mean']:.0f}", lines[0]["at"]]


def of_bench(kept: Kept, bench: str) -> list[Line]:
    """Return the lines of a benchmark by cell, in the order of their 'place'."""
    return sorted(
        (x for (b, _), x in kept.items() if b == bench), key=lambda x: (x.get("place", 0), x["cell"])
    )


def share_of(count: int, of: int) -> str:
    """Return 'count of of (interval)' with the exact 95% interval in percent."""
    found = share(count, of)
    return f"{count} of {of} ({100 * found.low:.1f}-{100 * found.high:.1f}%)"


def equal_commits(kept: Kept) -> str:
    """Return the table of false claims about equal commits."""
    rows = [
        [
            f"{x['bench'].removeprefix('equal ')}, {x['cell']}",
            x["at"],
            share_of(x["false"], x["trials"]),
            str(x["few"]),
            _verdict(x),
        ]
        for bench in EQUAL_BENCHES
        for x in of_bench(kept, bench)
    ]
    if not rows:
        return ""
    head = ["commits and noise", "at", "said to differ", "by 2 against 2 boots", "alpha is"]
    return f"{EQUAL}\n\n{tables.table(head, rows)}"


def _verdict(line: Line) -> str:
    alpha = line["alpha"]
    if line["false"] <= alpha * line["trials"]:
        return "kept"
    return "within chance" if share(line["false"], line["trials"]).low <= alpha else "**exceeded**"


def _shown(kept: Kept, bench: str) -> str:
    """Return the table of another benchmark, which says in its lines what is shown: column -> text.

    Its introduction is the 'about' of its first line.
    """
    lines = of_bench(kept, bench)
    columns = list(dict.fromkeys(column for x in lines for column in x["shown"]))
    rows = [[x["cell"], x["at"], *(str(x["shown"].get(column, "")) for column in columns)] for x in lines]
    about = lines[0].get("about", "")
    table = tables.table(["cell", "at", *columns], rows)
    return "\n\n".join(filter(None, (f"## {bench.capitalize()}", about, table)))
