"""A bisection is drawn anew when it has changed, and not otherwise."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import drawn_bisections
from bisector.interfaces.web.pages.drawn_bisections import DrawnBisections
from bisector.interfaces.web.problems import Refused
from bisector.interfaces.web.request_slots import Slots
from bisector.model.records import Ran
from bisector.testing.fakes import METRIC
from tests.support.fake_bisection import store_bisections
from tests.support.servers.web import wiring_in


def test_it_is_drawn_anew_once_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, kept = store_bisections(tmp_path, monkeypatch), DrawnBisections(Slots("reports", 1, 1))
    wiring = wiring_in(tmp_path)
    first, _ = kept.find(wiring, "fake-new")
    assert kept.find(wiring, "fake-new") == (first, True)
    monkeypatch.setattr(drawn_bisections, "_SHARE", float("inf"))
    store.append("fake-new", Ran("boot-001", 2, {METRIC: 102.0}, 2.0, 106.0))
    second, _ = kept.find(wiring, "fake-new")
    assert "3 samples in 1 boots" in second.content and "3 samples" not in first.content
    monkeypatch.setattr(drawn_bisections, "_SHARE", 1e-9)
    store.append("fake-new", Ran("boot-001", 3, {METRIC: 102.0}, 2.0, 108.0))
    assert kept.find(wiring, "fake-new") == (second, False)  # it was drawn just now, and that took long
    store.set_status("fake-new", "paused")
    assert "4 samples" in kept.find(wiring, "fake-new")[0].content


def test_those_that_nobody_looks_at_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_bisections, "_MOST_KEPT", 1)
    store_bisections(tmp_path, monkeypatch)
    wiring, kept = wiring_in(tmp_path), DrawnBisections(Slots("reports", 1, 1))
    first, _ = kept.find(wiring, "fake-new")
    kept.find(wiring, "fake-old")
    assert kept.find(wiring, "fake-new")[0] is not first


def test_nobody_waits_for_a_drawing_who_can_have_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, slots = store_bisections(tmp_path, monkeypatch), Slots("reports", 1, 1)
    wiring, kept = wiring_in(tmp_path), DrawnBisections(slots)
    monkeypatch.setattr(drawn_bisections, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(drawn_bisections, "_SHARE", float("inf"))
    with slots.one("another"), pytest.raises(Refused, match="busy with reports"):
        kept.find(wiring, "fake-new")
    first, _ = kept.find(wiring, "fake-new")
    store.append("fake-new", Ran("b1", 2, {METRIC: 102.0}, 2.0, 106.0))
    with slots.one("another"):
        assert kept.find(wiring, "fake-new") == (first, False)

    begun, go_on, drawing = threading.Event(), threading.Event(), drawn_bisections._draw

    def draw_slowly(wiring: Wiring, bisection: str, version: tuple[str, int]) -> drawn_bisections.Drawn:
        begun.set()
        go_on.wait(60)
        return drawing(wiring, bisection, version)

    monkeypatch.setattr(drawn_bisections, "_draw", draw_slowly)
    monkeypatch.setattr(drawn_bisections, "_PATIENCE_SECONDS", 20.0)
    with ThreadPoolExecutor() as pool:
        second = pool.submit(kept.find, wiring, "fake-new")
        fresh, waited = None, 0.0
        try:
            assert begun.wait(60)
            asked = time.monotonic()
            fresh = kept.find(wiring, "fake-new")
            waited = time.monotonic() - asked
        finally:
            go_on.set()
        assert fresh == (first, False) and waited < 10
        assert second.result(60)[0].version != first.version


def test_who_asks_first_waits_for_a_drawing_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_bisections(tmp_path, monkeypatch)
    wiring, kept = wiring_in(tmp_path), DrawnBisections(Slots("reports", 2, 2))
    begun, drawing = threading.Event(), drawn_bisections._draw
    drawn: list[str] = []

    def draw_slowly(wiring: Wiring, bisection: str, version: tuple[str, int]) -> drawn_bisections.Drawn:
        begun.set()
        time.sleep(0.2)
        drawn.append(bisection)
        return drawing(wiring, bisection, version)

    monkeypatch.setattr(drawn_bisections, "_draw", draw_slowly)
    monkeypatch.setattr(drawn_bisections, "_PATIENCE_SECONDS", 30.0)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(kept.find, wiring, "fake-new")
        assert begun.wait(60)
        assert kept.find(wiring, "fake-new") == first.result(60)
    assert drawn == ["fake-new"]


def test_each_user_has_slots_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_bisections(tmp_path, monkeypatch)
    wiring, slots = wiring_in(tmp_path), Slots("reports", 2, 1)
    kept = DrawnBisections(slots)
    with slots.one(wiring.settings.owner), pytest.raises(Refused):
        kept.find(wiring, "fake-new")
    with slots.one("another"):
        assert kept.find(wiring, "fake-new")[1]
