"""Comparisons that would be of unlike numbers, or of numbers that say two things."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.harness import Row, check_row, each_row

SECONDS, BYTES, BARE = "real: 1 s\n", "real: 4096 B\n", "real: 7\n"


def two(name: str, first: str | bytes, second: str | bytes, *arguments: str, says: list[str]) -> Row:
    """Return a row that compares two files."""
    return Row(name, ["compare", "a.in", "b.in", *arguments], says, {"a.in": first, "b.in": second})


UNLIKE = [
    ("s", "B"), ("ms", "MiB"), ("s", "ops/s"), ("MB/s", "MB"), ("KB", "kB"), ("KB/s", "KiB/s"), ("%", "s"),
    ("Hz", "s"), ("calls", "cycles"), ("calls/s", "ops/s"), ("", "s"), ("s", ""),
]  # fmt: skip
JSON = {
    "nan": "[NaN]", "infinity": "[Infinity]", "huge": "[1e309]", "true": "[true]", "null": "null",
    "text": '["1"]', "digits": f"[{'9' * 5000}]", "empty": "[]", "deep": "[" * 20_000, "half": "[1, 2",
    "object": "{}",
}  # fmt: skip
ROWS = [
    *(
        two(f"unit-{a or 'none'}-{b or 'none'}".replace("/", "-per-"), f"real: 1 {a}\n", f"real: 2 {b}\n",
            says=["'real' is", *(f"'{u}'" if u else "without a unit" for u in (a, b))])
        for a, b in UNLIKE
    ),
    two("unit-in-one-file", "real: 1 s\nreal: 1000 ms\n", SECONDS, says=["a.in:2", "'ms'", "'s'"]),
    two("unit-in-json", '{"metrics": {"real": {"values": [1], "unit": "s"}}}', BYTES, says=["'s'", "'B'"]),
    two("unit-without-effect", SECONDS, SECONDS, "--unit", "s", says=["--unit has no effect"]),
    two("unit-that-does-not-fit", SECONDS, BARE, "--unit", "B", says=["'s'", "'B'"]),
    two("metric-twice", '{"real": [1], "real": [2]}', SECONDS, says=["a.in:1", "'real' is there already"]),
    two("metric-twice-in-set", '{"metrics": {"real": [1], "real": [2]}}', SECONDS, says=["is there already"]),
    two("two-directions", SECONDS, SECONDS, "--better", "lower", "--better", "higher",
        says=["--better says lower and higher"]),
    two("two-directions-of-a-metric", SECONDS, SECONDS, "--better", "real=lower", "--better", "real=higher",
        says=["for 'real'"]),
    two("bisection-of-no-input", SECONDS, SECONDS, "--bisection", "here-open", says=["no input is a commit"]),
    *(
        two(f"number-{name}", SECONDS, f"real: {number} s\n", says=["b.in:1"])
        for name, number in (("nan", "nan"), ("inf", "inf"), ("huge", "1e309"), ("digits", "9" * 5000),
                             ("comma", "5,328"), ("text", "fast"), ("hex", "0x10"))
    ),
    *(
        two(f"bare-{name}", "1\n2\n", f"{number}\n", says=["b.in:1"])
        for name, number in (("nan", "nan"), ("inf", "-inf"), ("huge", "1e309"), ("digits", "9" * 5000),
                             ("dots", "1.2.3"), ("sign", "+"), ("words", "a b"))
    ),
    *(
        two(f"json-{name}", '{"real": [1]}', f'{{"real": {text}}}', says=["b"])
        for name, text in JSON.items()
    ),
    two("empty", "", SECONDS, says=["a.in", "nothing in it"]),
    two("not-text", b"\xff\xfe\x00", SECONDS, says=["a.in"]),
    two("page-over-an-input", SECONDS, SECONDS, "--html", "b.in", says=["--html: b.in is one of the inputs"]),
    two("page-over-a-link-to-an-input", SECONDS, SECONDS, "--html", "./a.in", says=["one of the inputs"]),
    Row("no-testbed-in-common", ["compare", "a@one=a.in", "b@two=b.in"],
        ["in common on one testbed (one, two)", "real"], {"a.in": SECONDS, "b.in": SECONDS}),
    two("threshold-nan", SECONDS, SECONDS, "--threshold", "nan%", says=["--threshold"]),
    two("threshold-huge", SECONDS, SECONDS, "--threshold", "1e309%", says=["--threshold"]),
    two("threshold-digits", SECONDS, SECONDS, "--threshold", "9" * 3000 + "%", says=["--threshold"]),
]  # fmt: skip


@each_row(ROWS)
def test_it_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)
