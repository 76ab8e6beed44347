"""From the output of rev-list to a commit graph: ends that are simplified away stay linked, in any order."""

from __future__ import annotations

from bisector.adapters.git.graph import assemble_graph, candidates_with_own_root, parse_rev_list


def parents_by_name(graph_lines: str, **options: bool) -> dict[str, tuple[str, ...]]:
    return parse_rev_list(graph_lines, first_parent=options.get("first_parent", False))


def test_lines_become_parents_each_once_and_in_order() -> None:
    lines = "b a\nc b a b\nd\n"
    assert list(parents_by_name(lines).items()) == [("b", ("a",)), ("c", ("b", "a")), ("d", ())]
    assert parents_by_name(lines, first_parent=True)["c"] == ("b",)
    assert parents_by_name("") == {}


def test_the_boundary_comes_first_and_is_no_candidate() -> None:
    graph = assemble_graph({"x": ["f"], "b": ["g"], "m": ["b", "x"]}, "g", "m", bases=["o"])
    assert graph.shas == ("g", "o", "f", "x", "b", "m")
    assert graph.candidate == (False, False, False, True, True, True)
    assert graph.parents == ((), (), (), (2,), (0,), (4, 3))
    assert (graph.good, graph.bad, graph.merge_bases, dict(graph.weights)) == (0, 5, (1,), {})


def test_a_bad_end_without_a_touched_path_becomes_the_child_of_all_tips_with_next_to_no_weight() -> None:
    graph = assemble_graph({"b": ["g"], "c": ["b"], "x": ["g"]}, "g", "bad")
    assert graph.shas[graph.bad] == "bad"
    assert {graph.shas[p] for p in graph.parents[graph.bad]} == {"c", "x"}
    assert dict(graph.weights) == {graph.bad: 1e-6}


def test_a_lost_link_to_good_is_put_back_once_at_its_lowest_descendants() -> None:
    # x and m contain good, but the simplified history shows neither; y does not contain it.
    links = {"y": ["o"], "x": ["o"], "m": ["x", "y"]}
    graph = assemble_graph(links, "g", "m", descendants={"g": {"x", "m"}})
    above = {graph.shas[i]: {graph.shas[p] for p in ps} for i, ps in enumerate(graph.parents)}
    assert above["x"] == {"o", "g"}
    assert above["y"] == {"o"}
    assert above["m"] == {"x", "y"}
    assert links == {"y": ["o"], "x": ["o"], "m": ["x", "y"]}, "the argument is left alone"


def test_only_histories_without_any_boundary_have_a_root_of_their_own() -> None:
    graph = assemble_graph({"r": [], "s": ["r"], "b": ["g"], "m": ["b", "s"]}, "g", "m")
    assert [graph.shas[i] for i in candidates_with_own_root(graph)] == ["r", "s"]
