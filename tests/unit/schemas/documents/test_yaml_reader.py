"""YAML: keys twice, aliases that expand or contain themselves, tags, depth, numbers; errors in our words."""

from __future__ import annotations

import pytest
import yaml

from bisector.errors import RequestError
from bisector.schemas.documents.yaml_reader import check_yaml, parse_yaml, yaml_lines

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3", "f:3: the key 'a' is there already in line 1"),
        ("a: {b: 1, b: 2}", "f:1: the key 'b' is there already in line 1"),
        ("a: 1\n'a': 2", "f:2: the key 'a' is there already in line 1"),
        ("<<: {a: 1}\n<<: {b: 1}", "f:2: the key '<<' is there already in line 1"),
        ("- &a [*a]", "f:1: the alias '*a' stands within what it stands for"),
        ("a: &a\n  b: *a", "f:2: the alias '*a' stands within what it stands for"),
        (BOMB, "more than 100,000 values"),
        (CHAIN, "more than 100 lists"),
        ("[" * 20_000, "f:1: more than 100 lists"),
        ("{a: " * 200, "f:1: more than 100 lists"),
        ("- " * 20_000, "f:1: more than 100 lists"),
        ("? " * 2000, "f:1: more than 100 lists"),
        ("- 1\n- " + "1" * 5000, "f:2: a number of thousands of digits"),
        ("- 0x" + "f" * 6000, "f:1: key '0': a number of more than 100 digits is too large"),
        ("- 1" + ":59" * 5000, "is too large"),
        ("x:\n  y: [.inf, 2]", "f:2: key 'x.y.0': inf is no finite number"),
        ("x: .NaN", "f:1: key 'x': nan is no finite number"),
        ("x: 1.0e+200", "f:1: key 'x': 1e+200 is too large"),
        ('x: "\\0"', "f:1: key 'x': text with a NUL"),
        (
            "!!python/object/apply:os.system [true]",
            "f:1: the tag 'tag:yaml.org,2002:python/object/",
        ),
        ("a: !vault x", "f:1: the tag '!vault' is not understood"),
        ("a: !!binary aGk=", "f:1: the tag"),
        ("!!set {a}", "f:1: the tag"),
        ("a: !!int x", "f:1: 'x' is no such value"),
        ("a: !!bool maybe", "f:1: 'maybe' is no such value"),
        ("a: !!map x", "f:1: not valid YAML: not understood here"),
        ("a:\n\t- b", "f:2: not valid YAML: a tab, or one of"),
        ("a: b: c", "f:1: not valid YAML: a ':' where no key can be"),
        ("a: 'x", "f:1: not valid YAML: a text in quotes does not end"),
        ("a: [", "f:2: not valid YAML: a value is missing"),
        ("- a\nb: c", "f:2: not valid YAML: this line is indented as the list above"),
        ("a: 1\n b: 2", "f:2: not valid YAML: a ':' where no key can be"),
        ("a: [1, 2\nb: 3", "f:2: not valid YAML: a list or mapping in brackets does not end"),
        ("--- a\n--- b", "f:2: not valid YAML: a second document begins"),
        ("a: *b", "f:1: not valid YAML: there is no anchor"),
        ('a: "\\q"', "f:1: not valid YAML: a backslash"),
        ('a: "\\xzz"', "f:1: not valid YAML: an escape of a character"),
        ("? [a]\n: b", "f:1: not valid YAML: a key must be a word"),
        ("<<: 3", "f:1: not valid YAML: '<<' must be followed"),
        ("%YAML 3.0\n--- a", "f:1: not valid YAML: "),
        ("a\nb: c", "f:2: not valid YAML: "),
        ("!<", "f:1: not valid YAML: "),
        ("&", "f:1: not valid YAML: "),
        ("a: |x", "f:1: not valid YAML: "),
    ],
)
def test_what_is_wrong_in_a_text(text: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_yaml(text, "f")
    assert words in caught.value.message
    assert caught.value.cure
    for theirs in ("while ", "did not find", "found ", "mapping values", "Exceeds", "could not"):
        assert theirs not in caught.value.message, "the library's own words"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing",
        "a: [1, -16, 1.5, 0.0001, true, off, ~, x]",
        "a: &x {b: 1}\nc: {<<: *x, b: 2}\nd: *x",
        "a: |\n  b\n  c\n",
        "a: 'x: y'\n",
        '"a": !!str 5',
    ],
)
def test_a_valid_document_is_what_pyyaml_says(text: str) -> None:
    assert parse_yaml(text, "f") == yaml.safe_load(text)


def test_keys_are_text() -> None:
    assert parse_yaml("{yes: 1, null: 2, 010: 3, 2026-01-01: 4}", "f") == {
        "yes": 1,
        "null": 2,
        "010": 3,
        "2026-01-01": 4,
    }


def test_dates_are_text() -> None:
    assert parse_yaml("a: 2026-13-45", "f") == {"a": "2026-13-45"}


@pytest.mark.parametrize(
    "written",
    [
        "010",
        "0x10",
        "0b11",
        "1_000",
        "1:30",
        "190:20:30.15",
        "6.10",
        "1.",
        ".5",
        "+5",
        "1.0e+3",
        "9007199254740993.0",
    ],
)
def test_a_number_that_python_writes_otherwise_stays_as_it_is_written(written: str) -> None:
    assert parse_yaml(f"a: {written}", "f") == {"a": written}


def test_the_syntax_alone_leaves_tags_to_others() -> None:
    check_yaml("a: !vault |\n  x\n", "f")
    with pytest.raises(RequestError, match="f:2: the key 'a'"):
        check_yaml("a: !vault x\na: 1", "f")


def test_the_lines_of_keys_and_elements() -> None:
    assert dict(yaml_lines("a:\n  - b: 1\n  - 2\nc: 3")) == {
        ("a",): 1,
        ("a", "0"): 2,
        ("a", "0", "b"): 2,
        ("a", "1"): 3,
        ("c",): 4,
    }
