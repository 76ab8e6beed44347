"""Nothing but our own markup leaves as markup."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from bisector.report.html.escaping import element, labelled_cells, text
from tests.support.report_material import HOSTILE


def test_text_is_escaped_once() -> None:
    assert text('a < b & "c"') == "a &lt; b &amp; &#34;c&#34;"
    assert text(text("<")) == "&lt;"
    assert text(None) == ""


def test_what_turns_or_hides_letters_is_shown_as_escapes() -> None:
    assert text("\x1b[31m\u202e") == "\\x1b[31m\\u202e"


@pytest.mark.parametrize("made", [element("p", HOSTILE), element("p", "", title=HOSTILE)])
def test_hostile_text_opens_no_element_and_ends_no_attribute(made: Markup) -> None:
    assert made.count("<") == 2  # <p> and </p>
    assert made.count('"') in (0, 2)


def test_attributes() -> None:
    assert element("path", d="M0 0", class_="a b", stroke_width=1.5, id=None) == (
        '<path d="M0 0" class="a b" stroke-width="1.5"/>'
    )


def test_each_cell_knows_its_column_whatever_it_holds() -> None:
    rows = Markup("<tr><th scope='row'>{}</th><td class='n'>{}</td></tr>\n").format(HOSTILE, "<td>") * 2
    made = labelled_cells(rows, ('"A"', "#B"))
    assert made.count("<th data-label=\"&#34;A&#34;\" scope='row'>") == 2
    assert made.count("<td data-label=\"B\" class='n'>&lt;td&gt;") == 2
    assert made.count("data-label") == 4
