"""What a search has measured, laid out for the posterior: visits as cells, and the hypotheses about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bisector.model.dag import CommitDag, Floats, Ints, Mask, Partition
from bisector.search.measurement import Readings, group_combinations


@dataclass(frozen=True, slots=True)
class DesignMatrix:
    """The visits as cells, and the hypotheses about them.

    tested: the distinct commits measured or known by their binary; commit: (T,) index into tested; binary:
    (T,) number of the (commit, layout); layout, testbed, time: (T,); fork: (T,) number of the fork base, 0
    that of good; cell: (V,) cell of each visit; fixed: (T, p) columns without prior; classes: the partition;
    prior: (C,) what marks and equal binaries leave of its prior; design: (C, T) H; span: seconds; effect:
    scale of effects in worse units; common: (T, T) part of the range that two cells share; counts: log prior
    of no, one, two (more) culprits.
    """

    readings: Readings
    tested: tuple[int, ...]
    commit: Ints
    binary: Ints
    layout: Ints
    testbed: Ints
    time: Floats
    fork: Ints
    cell: Ints
    fixed: Floats
    classes: Partition
    prior: Floats
    indicator: Floats
    span: float
    effect: float
    threshold: float
    shared_history: Floats
    count_log_prior: tuple[float, float, float]
    blocks: int


def first_with_same_binary(binaries: Mapping[tuple[int, int], str]) -> dict[int, int]:
    """Return for every built commit the first commit with the same kernel (itself if it is the first)."""
    first: dict[str, int] = {}
    result: dict[int, int] = {}
    for (commit, layout), binary in sorted(binaries.items()):
        if layout == 0 and binary:
            result[commit] = first.setdefault(binary, commit)
    return result


def build_design(
    dag: CommitDag,
    readings: Readings,
    *,
    same: Mapping[int, int],
    marks: Mapping[int, str],
    proven: tuple[tuple[int, ...], ...],
    effect: float,
    blocks: int,
    count_log_prior: tuple[float, float, float],
) -> DesignMatrix:
    """Lay out cells and hypotheses. proven: sets of commits already found; blocks: stretches of time."""
    name = np.array([same.get(c, c) for c in readings.commit.tolist()])
    span = float(readings.time.max()) or 1.0
    block = np.minimum((readings.time / span * blocks).astype(np.int64), blocks - 1)
    cells, cell = group_combinations(name, readings.layout, readings.testbed, block)
    _, binary = group_combinations(cells[0], cells[1])
    commits = sorted(set(cells[0].tolist()))
    tested = tuple(sorted({*commits, *marks, *same}))
    index = {c: i for i, c in enumerate(tested)}
    commit = np.array([index[c] for c in cells[0].tolist()])
    count = np.bincount(cell)
    time = np.bincount(cell, readings.time) / count
    classes = dag.partition(tested)
    prior = classes.prior.copy()
    for c, verdict in marks.items():
        holds = classes.contains[:, index[c]]
        prior[holds if verdict == "good" else ~holds] = 0.0
    for c, first in same.items():
        if c != first:  # one culprit cannot lie between two equal binaries
            prior[classes.contains[:, index[c]] != classes.contains[:, index[first]]] = 0.0
    total = prior.sum()
    if total > 0:
        prior /= total
    forks = dag.fork_numbers(tested)
    # What two commits have in common, as a part of the range: sums over the classes that both contain.
    inside = classes.contains.astype(float)
    common = (inside.T * classes.size) @ inside / max(1, int(classes.size.sum()))
    columns = [np.ones(len(commit))]
    for commits_of in proven:
        share = np.mean([[dag.is_ancestor(p, c) for c in tested] for p in commits_of], axis=0)
        columns.append(share[commit])
    return DesignMatrix(
        readings=readings,
        tested=tested,
        commit=commit,
        binary=binary,
        layout=cells[1],
        testbed=cells[2],
        time=time / span,
        fork=forks[commit],
        cell=cell,
        fixed=np.stack(columns, axis=1),
        classes=classes,
        prior=prior,
        indicator=classes.contains[:, commit].astype(float),
        span=span,
        effect=effect,
        threshold=readings.scale.threshold,
        shared_history=common[np.ix_(commit, commit)],
        count_log_prior=count_log_prior,
        blocks=blocks,
    )


def fork_offset_sd(p: DesignMatrix) -> float:
    """Return the scale of the unknown offset of a fork point."""
    return max(p.threshold, p.effect / 2)


def class_shares(dag: CommitDag, classes: Partition, commit: int) -> Floats:
    """Return for each class the share (C,) of its prior weight that a commit contains."""
    inside: Mask = dag.ancestors(commit) & (classes.label >= 0)
    count = len(classes.prior)
    part = np.bincount(classes.label[inside], dag.weights[inside], minlength=count)
    chosen = classes.label >= 0
    whole = np.bincount(classes.label[chosen], dag.weights[chosen], minlength=count)
    result: Floats = part / np.maximum(whole, 1e-300)
    return result
