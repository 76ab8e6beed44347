"""What the prior from git is worth: known culprits among the commits of the releases that they came with.

python -m tests.bench.search.priors REPO

REPO: a Linux repository with v2.6.14 to v2.6.33 and later fixes. The list is in known_culprits/culprits.toml;
each entry is checked against the repository first. Bits saved are log2(prior / uniform) of the true culprit.

The list comes from messages that name their culprit, so that 'named later' is true of all by construction. So
it is shown also without the message that the list was made from, and its backports.
"""

from __future__ import annotations

import math
import sys
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import mean

from bisector.adapters.git.changed_paths import parse_log
from bisector.adapters.git.repository import Repository, find_repository
from bisector.linux import commit_prior
from bisector.linux.hunk_heads import COMMIT, read
from bisector.linux.relevance import Change, is_never_compiled

ARCH = "x86_64"
LIST = Path(__file__).parent / "known_culprits" / "culprits.toml"
COMMITS_AT_ONCE = 500
"""As in bisector/adapters/git/history_diffs.py."""

_FIRST_HALF = frozenset("01234567")
"""Of the first digit of a culprit's id."""


@dataclass(frozen=True)
class Facts:
    """What git tells of a commit. lines: added and removed in files that were there; functions: touched."""

    sha: str
    changes: tuple[Change, ...] = ()
    lines: int = 0
    functions: int = 0
    merge: bool = False


@dataclass(frozen=True)
class Culprit:
    """An entry of the list."""

    sha: str
    subject: str
    workload: str
    good: str
    bad: str
    source: str
    effect: str = ""

    @property
    def half(self) -> str:
        """Return which half of the list it is in."""
        return "A" if self.sha[0] in _FIRST_HALF else "B"


class History:
    """What the benchmark reads of a repository, each commit once."""

    def __init__(self, repo: Path) -> None:
        self.git = Repository(find_repository(repo).top)
        self._known: dict[str, Facts] = {}

    def check(self, one: Culprit) -> None:
        """End where the repository does not say what the list says."""
        message = self.messages(one.source, "--no-walk")[one.source]
        subject = self.git.run("log", "-1", "--format=%s", one.sha).output.strip()
        inside = one.sha in self.shas(one.good, one.bad)
        fixed = self.git.run("merge-base", "--is-ancestor", one.source, one.bad, codes=(0, 1)).code == 0
        if subject != one.subject or one.sha[:7] not in message or not inside or fixed:
            sys.exit(f"{one.sha}: the repository says otherwise")

    def shas(self, good: str, bad: str) -> list[str]:
        """Return the commits of a range."""
        return self.git.run("rev-list", bad, f"^{good}", "--").output.split()

    def messages(self, *revs: str) -> dict[str, str]:
        """Return the messages of commits."""
        log = self.git.run("log", "-z", "--format=%H%n%B", *revs, "--").output
        parts = (part.partition("\n") for part in log.split("\0") if part)
        return {sha: message for sha, _, message in parts}

    def facts(self, good: str, bad: str) -> list[Facts]:
        """Return the commits of a range that a configuration of ARCH may compile; merges are among them."""
        shas = self.shas(good, bad)
        merges = set(self.git.run("rev-list", "--merges", bad, f"^{good}", "--").output.split())
        for sha in merges:
            self._known[sha] = Facts(sha, merge=True)
        missing = [sha for sha in shas if sha not in self._known]
        for start in range(0, len(missing), COMMITS_AT_ONCE):
            for one in self._read(missing[start : start + COMMITS_AT_ONCE]):
                self._known[one.sha] = one
        return [one for sha in shas if (one := self._known[sha]).merge or may_count(one)]

    def _read(self, shas: list[str]) -> Iterator[Facts]:
        given = "\n".join([*shas, "--"])
        options = ("log", "--no-walk=unsorted", "--no-renames", "--no-color", "--stdin")
        paths = parse_log(self.git.run(*options, "--name-status", "--format=%x00%H", stdin=given).output)
        form = ("-p", "-U0", "--numstat", f"--format={COMMIT}%H")
        lines = self.git.run(*options, *form, stdin=given).output.splitlines()
        extents: dict[str, int] = dict.fromkeys(shas, 0)
        sha, added = "", frozenset[str]()
        for line in lines:
            if line.startswith(COMMIT):
                sha = line.removeprefix(COMMIT).strip()
                added = frozenset(change.path for change in paths[sha] if change.added)
            elif line[:1].isdigit() and line.count("\t") == 2:
                plus, minus, path = line.split("\t")
                if path not in added and not is_never_compiled(path, ARCH):
                    extents[sha] += int(plus) + int(minus)
        for code in read(lines):
            yield Facts(code.sha, paths[code.sha], extents[code.sha], len(code.functions))


def may_count(facts: Facts) -> bool:
    """Return whether a commit changes more than documentation and other architectures."""
    return any(not is_never_compiled(change.path, ARCH) for change in facts.changes)


@dataclass(frozen=True)
class Score:
    """One culprit under one prior. rank: the middle one of equals."""

    culprit: Culprit
    rank: float
    of: int
    bits: float


def score(culprit: Culprit, shas: Sequence[str], shares: Sequence[float]) -> Score:
    """Return where the prior puts the culprit."""
    at = shas.index(culprit.sha)
    mixed = commit_prior.mix(shares)[at]
    return Score(culprit, middle_rank(shares, at), len(shas), math.log2(mixed * len(shas)))


def middle_rank(shares: Sequence[float], at: int) -> float:
    """Return the rank of one of the shares, from 1 on; of equals the middle one."""
    own = shares[at]
    more = sum(one > own * (1 + 1e-12) for one in shares)
    return more + (1 + sum(math.isclose(one, own) for one in shares)) / 2


def place(one: Facts) -> float:
    """Weigh by paths, and merges less."""
    return commit_prior.content_weight(None if one.merge else one.changes, ARCH)


def lines(one: Facts) -> float:
    """Weigh by changed lines alone.

    Changes that broke something are modelled by the logarithm of their size (Mockus and Weiss 2000, Bell Labs
    Technical Journal 5(2); Kamei et al. 2013, IEEE TSE 39(6)). Text of new files does not count: what was
    measured at the good end ran without it, until an old file calls it.
    """
    return math.log2(2 + one.lines)


def functions(one: Facts) -> float:
    """Weigh by changed functions alone."""
    return math.log2(2 + one.functions)


def place_and_lines(one: Facts) -> float:
    """Weigh by paths and lines."""
    return place(one) if one.merge else place(one) * lines(one)


FACTORS: Mapping[str, Callable[[Facts], float]] = {
    "lines": lines,
    "functions": functions,
    "place, merges and lines": place_and_lines,
    "place and merges": place,
}


def rate(history: History, culprit: Culprit, facts: list[Facts]) -> dict[str, Score]:
    """Return one culprit's scores, prior by prior."""
    shas = [one.sha for one in facts]
    index = {sha: number for number, sha in enumerate(shas)}
    result = {
        name: score(culprit, shas, commit_prior.share([f(one) for one in facts]))
        for name, f in FACTORS.items()
    }
    weights = [place(one) for one in facts]
    inside = history.messages(culprit.bad, f"^{culprit.good}")
    later = history.messages("--all", f"^{culprit.bad}")
    undone = {index[sha] for sha in commit_prior.cancelled(inside, shas[::-1])}
    title = later[culprit.source].partition("\n")[0]
    others = [text for text in later.values() if text.partition("\n")[0] != title]
    kinds: Mapping[str, Collection[str]] = {
        "place, merges, later fixes but the source": others,
        "place, merges, all later fixes": later.values(),
    }
    for name, messages in kinds.items():
        named = {index[sha] for sha in commit_prior.mentioned(messages, shas)}
        shares = commit_prior.share(weights, named=[named], undone=undone)
        result[name] = score(culprit, shas, shares)
    general = [one for one in facts if not one.merge and place(one) == 1.0]
    if any(one.sha == culprit.sha for one in general):
        shares = commit_prior.share([lines(one) for one in general])
        result["lines, among general code alone"] = score(culprit, [one.sha for one in general], shares)
    return result


def main(repo: str) -> None:
    """Print each culprit's ranks and bits, and each prior's over both halves."""
    history = History(Path(repo))
    culprits = [Culprit(**one) for one in tomllib.loads(LIST.read_text())["culprit"]]
    for one in culprits:
        history.check(one)
    print(f"{len(culprits)} culprits; the repository says of each what the list says", flush=True)
    scores: list[dict[str, Score]] = []
    ordered = sorted(culprits, key=lambda one: (one.good, one.bad))
    for (good, bad), same in groupby(ordered, key=lambda one: (one.good, one.bad)):
        facts = history.facts(good, bad)
        for one in same:
            found = rate(history, one, facts)
            scores.append(found)
            a, b, c = (found[n] for n in (list(FACTORS)[-1], *list(found)[len(FACTORS) : len(FACTORS) + 2]))
            print(
                f"| {one.sha[:12]} | {one.half} | {good}..{bad} | {a.of} | {a.rank:.0f} | {a.bits:+.2f} "
                f"| {b.rank:.0f} | {b.bits:+.2f} | {c.rank:.0f} | {c.bits:+.2f} |",
                flush=True,
            )
    for name in dict.fromkeys(name for found in scores for name in found):
        cells = []
        for half in ("A", "B", "AB"):
            bits = [f[name].bits for f in scores if name in f and f[name].culprit.half in half]
            where = [f[name].rank / f[name].of for f in scores if name in f and f[name].culprit.half in half]
            if bits:
                cells.append(f"{len(bits)} | {mean(where):.2f} | {mean(bits):+.2f} | {min(bits):+.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
