"""Choices of forms: the repositories, workloads and testbeds that a request may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bisector.errors import PerfbisectError
from bisector.interfaces.web.pages.page_view import View
from bisector.model.access import may
from bisector.schemas.remote_request import listed_workloads
from bisector.schemas.web_settings import WebSettings
from bisector.schemas.workload.workload import workload_names

Choices = Mapping[str, Sequence[tuple[str, str]]]
"""A field -> its values with their words, as `pieces.choice` takes them."""


def choices_of(view: View) -> Choices | None:
    """Return what a form may name; None for those who may not send it, or where no repository is listed."""
    web = view.wiring.settings.web or WebSettings()
    if not may(view.visitor.user.role, "operate") or not web.repositories:
        return None
    return {
        "repo": [(name, name) for name in web.repositories],
        "workload": [(name, name) for name in listed_workloads(web, workload_names())],
        "testbed": [("", "the first that fits"), *((name, name) for name in _testbeds(view, web))],
    }


def _testbeds(view: View, web: WebSettings) -> Sequence[str]:
    try:
        return web.testbeds or [spec.name for spec in view.wiring.lab.testbeds]
    except PerfbisectError:  # the inventory is broken: the server chooses when it is mended
        return ()


def filled_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that somebody has filled."""
    return {name: text.strip() for name, text in fields.items() if text.strip()}
