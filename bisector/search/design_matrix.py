"""The posterior's design matrix: visits averaged into cells, the classes of commits in each, covariances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bisector.model.dag import CommitDag, Floats, Ints, Mask, Partition
from bisector.search.measurement import Readings
from bisector.stats.grouping import group_combinations
from bisector.stats.nested_covariance import NestedCovariance

MAX_EXACT_TIMES = 64
"""Up to so many cells on one testbed each has its own time. More have that of their block, a sixteenth of the
time so far, and share its drift: matrices of hundreds of times made decisions of up to two seconds."""
MIN_CELLS_PER_GROUP = 2
"""Cells on one testbed, per commit and time, from which the structure of their covariances saves work."""


@dataclass(frozen=True, slots=True)
class DesignMatrix:
    """Cells (T,), and classes of commits (C,) that may hold a culprit.

    A cell is one binary on one testbed in one block of time. tested: distinct commits that were measured,
    marked or compared by their binary; commit: (T,) index into tested; binary: (T,) index of (commit,
    layout); layout, testbed: (T,); time: (T,) mean, 0..1 of the time so far, with
    several testbeds or many cells of its block; fork: (T,) index of the fork
    base, 0 for that of good; cell: (V,) cell of each visit; fixed: (T, p) columns of fixed effects, first the
    common level, then the proven changes, then the parts of proven sets that measured commits contain;
    parts: column of each by (number of the proven change, what is contained of it); classes: the partition by
    tested commits; prior: (C,) its prior after marks and equal binaries; indicator: (C, T) 1 where a cell's
    commit contains the class; effect: scale of effects, threshold: both in worse units; shared_history: (T,
    T) share of the range that two cells have in common;
    count_log_prior: of no, one, two (further) culprits.
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
    parts: Mapping[tuple[int, tuple[bool, ...]], int]
    classes: Partition
    prior: Floats
    indicator: Floats
    effect: float
    threshold: float
    shared_history: Floats
    count_log_prior: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class NoiseHypothesis:
    """One noise hypothesis: standard deviations in worse units. log_prior: log of its prior weight."""

    boot: float
    binary: float = 0.0
    background: float = 0.0
    drift: float = 0.0
    testbed: float = 0.0
    log_prior: float = 0.0


def first_with_same_binary(binaries: Mapping[tuple[int, int], str]) -> dict[int, int]:
    """Return for every built commit the first commit with the same kernel (possibly itself)."""
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
    """Assign visits to cells and compute the design matrix.

    same: commit -> first commit of the same binary; marks: commit -> 'good' or 'bad'; proven: commits of each
    proven change; blocks: number of time blocks. The others are as in DesignMatrix.
    """
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
    if len(readings.testbeds) > 1 or len(time) > MAX_EXACT_TIMES:  # one for a block: drift has few values
        mean = np.bincount(block, readings.time) / np.maximum(np.bincount(block), 1)
        time = mean[cells[3]]
    classes = dag.partition(tested)
    prior = classes.prior.copy()
    for c, verdict in marks.items():
        holds = classes.contains[:, index[c]]
        prior[holds if verdict == "good" else ~holds] = 0.0
    for c, first in same.items():
        if c != first:  # no single culprit lies between two equal binaries
            prior[classes.contains[:, index[c]] != classes.contains[:, index[first]]] = 0.0
    total = prior.sum()
    if total > 0:
        prior /= total
    forks = dag.fork_numbers(tested)
    # What two commits share, as a part of the range: the size of the classes that both contain.
    inside = classes.contains.astype(float)
    common = (inside.T * classes.size) @ inside / max(1, int(classes.size.sum()))
    columns = [np.ones(len(commit))]
    held = [np.array([dag.ancestors(c)[list(commits_of)] for c in tested]) for commits_of in proven]
    columns += [contained.mean(axis=1)[commit] for contained in held]
    # What commits that contain only a part of a proven set have of its effect is not known from the proof:
    # those that were measured inside it before they failed, and branches that left it. Those with the same
    # part share a level, so no class explains it.
    parts: dict[tuple[int, tuple[bool, ...]], int] = {}
    for number, contained in enumerate(held):
        for part in np.unique(contained[commit], axis=0):
            if part.any() and not part.all():
                parts[number, tuple(part.tolist())] = len(columns)
                columns.append((contained == part).all(axis=1)[commit].astype(float))
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
        parts=parts,
        classes=classes,
        prior=prior,
        indicator=classes.contains[:, commit].astype(float),
        effect=effect,
        threshold=readings.scale.threshold,
        shared_history=common[np.ix_(commit, commit)],
        count_log_prior=count_log_prior,
    )


def fork_offset_sd(p: DesignMatrix) -> float:
    """Return the standard deviation of the unknown offset of a fork base, in worse units."""
    return max(p.threshold, p.effect / 2)


def few_groups(p: DesignMatrix, noises: Sequence[NoiseHypothesis]) -> bool:
    """Return whether the covariances of cells have a structure that saves work: testbeds or few groups."""
    if len(p.readings.testbeds) > 1:
        return True
    if are_diagonal(p, noises):
        return False
    times = len(np.unique(p.time)) if any(n.drift for n in noises) else 0
    return len(p.commit) >= MIN_CELLS_PER_GROUP * (len(np.unique(p.commit)) + times)


def nested_covariances(
    p: DesignMatrix, noises: Sequence[NoiseHypothesis], diagonal: Floats
) -> tuple[NestedCovariance, Ints]:
    """Return the covariances of cells, and a cell of each of the first groups.

    diagonal: as below. With several testbeds these are eliminated first, and the cells of one binary are a
    group. On one testbed binaries of several cells are eliminated first, and the cells of one commit are a
    group. Groups share history, cells of one time the drift.
    """
    binary_variance, background_variance, drift_variance, testbed_variance = (
        np.array([getattr(n, name) for n in noises])[:, None, None] ** 2
        for name in ("binary", "background", "drift", "testbed")
    )
    several = len(p.readings.testbeds) > 1
    _, cell, group = np.unique(p.binary if several else p.commit, return_index=True, return_inverse=True)
    fork = p.fork[cell]
    shared = background_variance * p.shared_history[np.ix_(cell, cell)]
    shared = shared + fork_offset_sd(p) ** 2 * ((fork[:, None] == fork) & (fork > 0))
    if several:
        shared = shared + binary_variance * np.eye(len(cell))
        outer, variance = p.testbed, np.repeat(testbed_variance[:, 0], len(p.readings.testbeds), axis=1)
    else:
        alone = np.bincount(p.binary)[p.binary] == 1
        diagonal = diagonal + binary_variance[:, 0] * alone
        names, outer = np.unique(np.where(alone, -1, p.binary), return_inverse=True)
        variance = binary_variance[:, 0] * (names >= 0)
    labels = [group]
    if drift_variance.any():
        times, block = np.unique(p.time, return_inverse=True)
        by_time = drift_variance * np.minimum(times[:, None], times)
        apart = np.zeros((len(noises), len(cell), len(times)))
        shared = np.block([[shared, apart], [apart.transpose(0, 2, 1), by_time]])
        labels.append(len(cell) + block)
    return NestedCovariance(diagonal, outer, variance, labels, shared), cell


def are_diagonal(p: DesignMatrix, noises: Sequence[NoiseHypothesis]) -> bool:
    """Return whether all covariances of cells on one testbed are diagonal."""
    repeated = len(set(p.binary.tolist())) < len(p.binary)
    return not p.fork.any() and not any(n.background or n.drift or (repeated and n.binary) for n in noises)


def dense_covariances(p: DesignMatrix, noises: tuple[NoiseHypothesis, ...], diagonal: Floats) -> Floats:
    """Return the covariances of the cells (G, T, T) on one testbed.

    diagonal: (G, T) boot and run noise of the cells.
    """
    forked = bool(p.fork.any())
    variances = [
        np.array([getattr(n, name) for n in noises]) ** 2 for name in ("binary", "background", "drift")
    ]
    forks = fork_offset_sd(p) ** 2 * ((p.fork[:, None] == p.fork) & (p.fork > 0))
    same_binary = (p.binary[:, None] == p.binary).astype(float)
    earlier = np.minimum(p.time[:, None], p.time)
    k = np.zeros((len(noises), *same_binary.shape))
    np.einsum("gtt->gt", k)[:] = diagonal
    # One at a time: what is computed in between stays in the processor's cache.
    for own, binary, background, drift in zip(k, *variances, strict=True):
        own += binary * same_binary
        if background:
            own += background * p.shared_history
        if drift:
            own += drift * earlier
        if forked:
            own += forks
    return k


def class_shares(dag: CommitDag, classes: Partition, commits: Mask) -> Floats:
    """Return for each class the share (C,) of its prior that some commits have. commits: (n,) which ones."""
    inside: Mask = commits & (classes.label >= 0)
    count = len(classes.prior)
    part = np.bincount(classes.label[inside], dag.weights[inside], minlength=count)
    chosen = classes.label >= 0
    whole = np.bincount(classes.label[chosen], dag.weights[chosen], minlength=count)
    result: Floats = part / np.maximum(whole, 1e-300)
    return result
