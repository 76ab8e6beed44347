"""Prior weights of commits by what git says of each, before anything is measured.

The weights are judgements, not fits: each factor is argued where it stands, and no number was changed after
it was measured on known culprits (tests/bench/search/priors.py). `mix` keeps half of the mass uniform, so
that weights that mislead cost at most one bit, however wrong they are. The size of a change is left out:
among commits of general code it was worth 0.2 bits, and git would have to compute every diff for it.

What messages tell depends on what is looked for. A loss is suspected where somebody mended or reverted it
later. A gain (`--find fix`) is suspected where a commit mends or reverts what the older end still has; that a
later message names a commit tells of no gain. In both searches a revert within the range and what it takes
back cancel, so the ends differ by neither. `--scan` looks for just such pairs: there it is held against no
commit that something cancels it, and what is named is suspect as well as what mends, whichever is looked for,
because the one hides the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from bisector.linux.relevance import Change, is_never_compiled
from bisector.model.goal import Find

UNIFORM_SHARE = 0.5
"""Share of the mass that stays uniform. A commit never has less than half of its uniform probability, so what
has to be learnt to find it grows by at most log2(1 / UNIFORM_SHARE) = 1 bit."""

NAMED_SHARE = 0.5
"""Share of the weights for commits that messages point at, where there are any: those that a later fix or
revert names, or that are fixes or reverts; of both kinds, in a scan, half of it each. Whether a culprit is
found and named so depends on how old the range is; half is indifference between 'it is named' and 'it is
not', and as well between 'it is a fix by its message' and 'it is not'. How few are named decides what that is
worth: no factor has to be guessed."""

_SPECIAL = 0.25
"""Weight of a commit that changes only code of one device, file system or protocol, beside general code. Most
workloads run little of it. It is not less, for the one that a workload does run is where its time goes."""

_NOT_COMPILED = 1 / 16
"""Weight of a commit that changes nothing that any build for the architecture reads."""

_MERGE = 0.125
"""Weight of a merge beside a commit of its own text. A merge without conflict changes nothing that its
parents did not; two changes that are slow only together are rare, and a conflict solved badly is as well."""

_UNDONE = 0.125
"""Factor for a commit that the range itself reverts, and for the revert: what the one cost or brought is not
in the newer end, and the other brought or cost no more than that. Not less, for few reverts are whole."""

_SPECIAL_TOPS = frozenset({"crypto", "drivers", "firmware", "security", "sound", "tools", "usr", "virt"})
_GENERAL_NET = frozenset({"core", "ipv4", "unix"})
"""Folders of net/ that most configurations use."""

_ID = re.compile(r"\b[0-9a-f]{7,40}\b")
_BACKPORT = re.compile(
    r"^.*(?:\bcommit:? +[0-9a-f]{7,40} +upstream|\bupstream +commit|cherry[ -]picked from).*$", re.I | re.M
)
"""A line of a backport that names the original of the same change, of which it says nothing bad."""

_REVERTS = re.compile(r"\b[Tt]his reverts commit:? +([0-9a-f]{7,40})")
_MENDS = re.compile(r"(?:^[ \t]*fixes:|\bcommit:?)[ \t]+([0-9a-f]{7,40})\b", re.I | re.M)
"""Where a message says what it mends or takes back; before 'Fixes:' came into use, in a sentence."""
_SHORTEST_ID = 7
"""Digits that git itself wrote for a short id in these years."""

_NO_FACTORS: Mapping[str, float] = MappingProxyType({})
_NO_MESSAGES: Mapping[str, str] = MappingProxyType({})


def place(changes: Iterable[Change], arch: str) -> float:
    """Return the weight of where a commit changes the tree. arch: as in recipes."""
    return max((_of_path(change.path, arch) for change in changes), default=_NOT_COMPILED)


def _of_path(path: str, arch: str) -> float:
    if is_never_compiled(path, arch):
        return _NOT_COMPILED
    top, *inner = path.split("/")
    own_folder = len(inner) > 1
    if (
        top in _SPECIAL_TOPS
        or (top == "fs" and own_folder)
        or (top == "net" and own_folder and inner[0] not in _GENERAL_NET)
    ):
        return _SPECIAL
    return 1.0


def content_weight(changes: Iterable[Change] | None, arch: str) -> float:
    """Return the weight of a commit by what it changes. changes: None of a merge."""
    return _MERGE if changes is None else place(changes, arch)


def path_factor(changes: Iterable[Change], factors: Mapping[str, float]) -> float:
    """Return the largest factor of what a commit changes, 1 of nothing. factors: by file or folder."""
    return max((_factor_of(change.path, factors) for change in changes), default=1.0)


def _factor_of(path: str, factors: Mapping[str, float]) -> float:
    """Return the factor of a path, or of the closest folder around it that has one; else 1."""
    while path:
        found = factors.get(path, factors.get(f"{path}/"))
        if found is not None:
            return found
        path = path.rpartition("/")[0]
    return 1.0


def weigh(
    shas: Sequence[str],
    changes: Mapping[str, Sequence[Change]],
    arch: str,
    *,
    find: Find = "regression",
    scan: bool = False,
    inside: Mapping[str, str] = _NO_MESSAGES,
    later: Iterable[str] = (),
    commits: Mapping[str, float] = _NO_FACTORS,
    paths: Mapping[str, float] = _NO_FACTORS,
    seen: Mapping[str, float] = _NO_FACTORS,
) -> tuple[list[float], int]:
    """Return the prior weights of commits, one each, with a mean of 1, and at how many messages point.

    shas: parents before children; changes: by commit id, none of a merge; find, scan: what is looked for;
    inside: messages of the range by commit id; later: those of commits that the newer end does not hold;
    commits, paths: factors that a user gives, by full id and by file or folder; seen: those of what was
    measured at the ends, by full id. All are multiplied before they are mixed: together they cost at most one
    bit.
    """
    own = [
        content_weight(changes.get(sha), arch)
        * commits.get(sha, 1.0)
        * path_factor(changes.get(sha, ()), paths)
        for sha in shas
    ]
    index = {sha: number for number, sha in enumerate(shas)}
    named, mending, undone = frozenset[str](), frozenset[str](), frozenset[str]()
    if scan:
        named = mentioned((*later, *inside.values()), shas)
        mending = menders(inside, shas, of_the_range=True)
    elif find == "fix":
        mending, undone = menders(inside, shas), cancelled(inside, shas)
    else:
        named, undone = mentioned(later, shas), cancelled(inside, shas)
    groups = [{index[sha] for sha in group} for group in (named, mending)]
    shares = share(own, named=groups, undone={index[sha] for sha in undone})
    shares = [one * seen.get(sha, 1.0) for one, sha in zip(shares, shas, strict=True)]
    total = sum(shares)
    return [len(shas) * one for one in mix([one / total for one in shares])], len(named | mending)


def mentioned(messages: Iterable[str], shas: Collection[str]) -> frozenset[str]:
    """Return the commits that messages name by their ids, each message's own original (a backport's) aside.

    A message that names a commit seldom praises it: it mends what the commit broke, or takes it back. Old
    messages have no 'Fixes:', so every id counts. An id that several commits begin with names none.
    """
    known = _by_prefix(shas)
    return frozenset(
        sha
        for message in messages
        for word in _ID.findall(_BACKPORT.sub("", message))
        if (sha := _resolve(word, known)) is not None
    )


def menders(
    messages: Mapping[str, str], shas: Collection[str], *, of_the_range: bool = False
) -> frozenset[str]:
    """Return the commits whose messages say that they mend or take back one that is none of `shas`.

    Such a one the older end has, or the message is a backport's and names what its range has by other ids.
    messages: by commit id; of_the_range: what mends one of `shas` counts as well.
    """
    known = _by_prefix(shas)

    def is_inside(word: str) -> bool:
        return any(sha.startswith(word) for sha in known.get(word[:_SHORTEST_ID], ()))

    return frozenset(
        sha
        for sha in shas
        for word in _MENDS.findall(_BACKPORT.sub("", messages.get(sha, "")))
        if of_the_range or not is_inside(word.lower())
    )


def cancelled(messages: Mapping[str, str], shas: Sequence[str]) -> frozenset[str]:
    """Return the commits that a revert among them takes back, and these reverts.

    messages: by commit id. A revert that is itself reverted takes nothing back.
    """
    known, found = _by_prefix(shas), set[str]()
    for sha in reversed(shas):
        if sha not in found:
            words = _REVERTS.findall(messages.get(sha, ""))
            pairs = [taken for word in words if (taken := _resolve(word, known)) not in (None, sha)]
            found.update(filter(None, (*pairs, sha if pairs else None)))
    return frozenset(found)


def _by_prefix(shas: Iterable[str]) -> dict[str, list[str]]:
    known: dict[str, list[str]] = {}
    for sha in shas:
        known.setdefault(sha[:_SHORTEST_ID], []).append(sha)
    return known


def _resolve(word: str, known: dict[str, list[str]]) -> str | None:
    found = [sha for sha in known.get(word[:_SHORTEST_ID], ()) if sha.startswith(word)]
    return found[0] if len(found) == 1 else None


def share(
    weights: Sequence[float], *, named: Iterable[Collection[int]] = (), undone: Collection[int] = ()
) -> list[float]:
    """Return weights that sum to one. weights: by content, positive, one a commit.

    named: indices of the commits of each kind at which messages point, which share `NAMED_SHARE`; undone: of
    those whose changes cancel in the range.
    """
    own = list(weights)
    for index in undone:
        own[index] *= _UNDONE
    total = sum(own)
    result = [weight / total for weight in own]
    groups = [group for group in named if group]
    if groups:
        result = [(1 - NAMED_SHARE) * weight for weight in result]
    for group in groups:
        among = sum(own[index] for index in group)
        for index in group:
            result[index] += NAMED_SHARE / len(groups) * own[index] / among
    return result


def mix(shares: Sequence[float]) -> list[float]:
    """Return prior probabilities (they sum to one) from shares that do, mixed with the uniform prior."""
    return [UNIFORM_SHARE / len(shares) + (1 - UNIFORM_SHARE) * one for one in shares]
