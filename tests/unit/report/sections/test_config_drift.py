"""Where along the range options of the configuration change, told from the kernels that were built."""

from collections.abc import Mapping

from bisector.model.commit_graph import CommitGraph
from bisector.model.facts import KernelFacts
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Built
from bisector.report.report_model import Material
from bisector.report.sections import config_drift


def material(
    parents: tuple[tuple[int, ...], ...], options: Mapping[int, Mapping[str, str] | None]
) -> Material:
    """Return a bisection that built the commits of `options`: index -> configuration, None: it failed."""
    n = len(parents)
    graph = CommitGraph(
        tuple(f"{i + 1:x}" * 40 for i in range(n)), parents, (False, *[True] * (n - 1)), 0, n - 1
    )
    records = []
    for number, (commit, found) in enumerate(options.items()):
        if found is None:
            records.append((number, Built(commit, False, 9.0, failure="error")))
        else:
            records.append((number, Built(commit, True, 9.0, kernel=KernelFacts(options=found))))
    goal = Goal(Metric("real", "s", "lower", Threshold(0.05)))
    return Material("b-1", 0.0, "done", {}, graph, goal, None, records, [])


LINE = ((), (0,), (1,), (2,), (3,))


def test_a_change_is_told_with_the_shortest_stretch_that_holds_it() -> None:
    found = config_drift.find(
        material(
            LINE, {0: {"SMP": "y"}, 4: {"SMP": "y", "RT": "y"}, 2: {"SMP": "y"}, 3: {"SMP": "y", "RT": "y"}}
        )
    )
    assert found == (config_drift.Drift("RT", "absent", "y", 2, 3, 1),)


def test_an_option_that_comes_and_goes_is_told_twice_and_a_failed_build_not_at_all() -> None:
    found = config_drift.find(material(LINE, {0: {"A": "y"}, 4: {"A": "y"}, 2: {"A": "m"}, 3: None}))
    assert [(d.before, d.after, d.last, d.first, d.commits) for d in found] == [
        ("y", "m", 0, 2, 2),
        ("m", "y", 2, 4, 2),
    ]


def test_branches_are_compared_with_their_own_ancestors_only() -> None:
    #     1 - 2
    #   /       \
    # 0 --- 3 --- 4
    parents = ((), (0,), (1,), (0,), (3, 2))
    found = config_drift.find(material(parents, {0: {"A": "1"}, 2: {"A": "2"}, 3: {"A": "1"}, 4: {"A": "2"}}))
    assert [(d.last, d.first, d.commits) for d in found] == [(0, 2, 2)]


def test_what_kconfig_says_of_the_compiler_is_no_drift() -> None:
    one, other = {"CC_VERSION_TEXT": "gcc 11", "A": "y"}, {"CC_VERSION_TEXT": "gcc 12", "A": "y"}
    found = material(LINE, {0: one, 4: other})
    assert config_drift.find(found) == ()
    assert "the same effective .config" in "\n".join(config_drift.lines(found))


def test_many_changes_are_cut_in_the_text_and_whole_in_the_json() -> None:
    new = {f"OPTION_{i:02}": "y" for i in range(30)}
    found = material(LINE, {0: {"A": "y"}, 4: {"A": "y", **new}})
    text = config_drift.lines(found)
    assert "  111111111111..555555555555, within 4 commits:" in text
    assert text[-1] == "  and 10 more, all of them in report.json"
    assert len(config_drift.render(found)) == 30
    assert config_drift.render(found)[0]["first"] == "5" * 40


def test_one_kernel_has_nothing_to_be_compared_with() -> None:
    assert config_drift.lines(material(LINE, {0: {"A": "y"}})) == []
