"""What a reader sees of a page: the rows of its tables, its pairs of name and value, its forms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape


def words(markup: str) -> str:
    """Return the text of markup, without tags, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def rows_of(page: str, table: str) -> Sequence[dict[str, str]]:
    """Return the rows of the table of that name: head of the column -> text of the cell; none without it."""
    markup = page.partition(f'aria-label="{table}"')[2].partition("</table>")[0]
    cells = re.compile(r'<t[hd] data-label="([^"]*)"[^>]*>(.*?)</t[hd]>', re.S)
    found = [cells.findall(row) for row in markup.partition("<tbody>")[2].split("</tr>")]
    return [{unescape(head): words(text) for head, text in row} for row in found if row]


def pairs_of(page: str) -> dict[str, str]:
    """Return what stands in lists of names and values, one text for each name."""
    found = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", page, re.S)
    return {words(name): words(value) for name, value in found}


def lead_of(page: str) -> str:
    """Return the sentence below the heading; '' without one."""
    found = re.search(r'<p class="lead">(.*?)</p>', page, re.S)
    return words(found[1]) if found else ""


def kind_of(page: str) -> str:
    """Return the line above the heading."""
    found = re.search(r'<p class="kind">(.*?)</p>', page, re.S)
    return words(found[1]) if found else ""


def forms_of(page: str) -> set[str]:
    """Return the addresses to which the forms of a page send something that changes."""
    return set(re.findall(r'<form method="post" action="([^"]*)"', page)) - {"/logout"}
