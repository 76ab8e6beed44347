"""The policy of a page allows its own style and script of `page_assets`, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from bisector.report.html.self_contained import render
from tests.support.report_material import HOSTILE


def page(data: dict[str, object] | None) -> str:
    nothing: dict[str, object] = {
        "sentences": (HOSTILE,),
        "flame": None,
        "rows": (),
        "calls": (),
        "warnings": (),
    }
    return render("profile.html.j2", title=HOSTILE, data=data, profile=nothing)


def digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def policy(text: str) -> dict[str, list[str]]:
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert found is not None
    directives = found[1].replace("&#39;", "'").split("; ")
    return {name: values for name, *values in (directive.split() for directive in directives)}


def test_the_policy_names_what_the_page_holds() -> None:
    text = page({"x": [1]})
    rules = policy(text)
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == ["'none'"]
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert rules["style-src"] == [digest(style) for style in styles]
    assert rules["script-src"] == [digest(script) for script in scripts] and len(scripts) == 2


def test_without_data_there_is_no_script() -> None:
    text = page(None)
    assert "<script" not in text and "script-src" not in policy(text)


def test_data_cannot_end_its_element() -> None:
    text = page({"text": HOSTILE})
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == {"text": HOSTILE}
