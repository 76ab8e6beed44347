"""A bisection is drawn anew when it has changed, and not otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.interfaces.web.pages import drawn_bisections
from bisector.interfaces.web.pages.drawn_bisections import DrawnBisections
from bisector.model.records import Ran
from bisector.testing.fakes import METRIC
from tests.support.fake_bisection import store_bisections
from tests.support.servers.web import wiring_in


def test_it_is_drawn_anew_once_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, kept = store_bisections(tmp_path, monkeypatch), DrawnBisections()
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
    wiring, kept = wiring_in(tmp_path), DrawnBisections()
    first, _ = kept.find(wiring, "fake-new")
    kept.find(wiring, "fake-old")
    assert kept.find(wiring, "fake-new")[0] is not first
