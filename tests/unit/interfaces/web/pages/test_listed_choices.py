"""Which repositories, workloads and testbeds forms offer, and to whom."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages.listed_choices import filled_fields
from bisector.schemas.web_settings import WebSettings
from tests.support.servers.web import make_tokens, serving, wiring_in

INVENTORY = '{"testbeds": {"hosts": {"box-1": {"perfbisect_kind": "libvirt", "perfbisect_clock": "wall"}}}}'


def offered(folder: Path, web: WebSettings | None, inventory: str = INVENTORY) -> dict[str, list[str]] | None:
    """Return the values of each choice in the form that starts a bisection; None without a form."""
    (folder / "lab.yml").write_text(inventory)
    settings = wiring_in(folder, web).settings.model_copy(update={"lab": folder / "lab.yml"})
    wiring = Wiring(settings)
    secrets = make_tokens(wiring)
    with serving(wiring) as url:

        def form(role: str) -> str:
            headers = {"Authorization": f"Bearer {secrets[role]}"}  # type: ignore[index]
            text = httpx.get(f"{url}/bisections", headers=headers, timeout=60).text
            return text.partition('<form method="post" action="/bisections"')[2].partition("</form>")[0]

        assert form("read") == ""
        found = form("operate")
    if not found:
        return None
    choices = re.findall(r'<select[^>]* name="(\w+)".*?</select>', found, re.S)
    texts = re.findall(r"<select.*?</select>", found, re.S)
    return {
        name: re.findall(r'<option value="([^"]*)"', text)
        for name, text in zip(choices, texts, strict=True)
        if name in ("repo", "workload", "testbed")
    }


def listed(**more: object) -> WebSettings:
    return WebSettings.model_validate({"repositories": {"linux": "/not/here"}, **more})


@pytest.mark.parametrize("web", [None, WebSettings()])
def test_without_a_listed_repository_there_is_no_form(tmp_path: Path, web: WebSettings | None) -> None:
    assert offered(tmp_path, web) is None


def test_testbeds_are_those_of_the_inventory(tmp_path: Path) -> None:
    found = offered(tmp_path, listed())
    assert found is not None
    assert (found["repo"], found["testbed"]) == (["linux"], ["", "box-1"]) and len(found["workload"]) > 3


def test_what_settings_list_is_offered_alone(tmp_path: Path) -> None:
    found = offered(tmp_path, listed(testbeds=("box-2",), workloads=("pipe-test",)))
    assert found == {"repo": ["linux"], "workload": ["pipe-test"], "testbed": ["", "box-2"]}


def test_a_broken_inventory_hides_no_form(tmp_path: Path) -> None:
    found = offered(tmp_path, listed(), "{")
    assert found is not None and found["testbed"] == [""]


def test_a_field_of_blanks_is_not_filled() -> None:
    assert filled_fields({"good": " v6.1 ", "bad": "  ", "max_hours": ""}) == {"good": "v6.1"}
