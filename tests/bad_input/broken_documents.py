"""Files that are broken whatever they are for: rows for each reader of YAML, TOML and JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bad_input.harness import Row

ANY_LANGUAGE: Mapping[str, tuple[bytes, str]] = {
    "latin-1": (b"# fran\xe7ais\n", ":1: not text in UTF-8: the byte 0xe7"),
    "utf-16": ("name: x\n".encode("utf-16"), ":1: not text in UTF-8"),
    "a byte order mark": (b"\xef\xbb\xbf# x\n", ":1: begins with a byte order mark"),
    "a NUL": (b"\n\0\n", ":2: holds the control character U+0000"),
    "an escape sequence": (b"# \x1b]52;c;eA==\x07\n", ":1: holds the control character U+001B"),
    "a C1 character": ("# \x9b2J\n".encode(), ":1: holds the control character U+009B"),
}
"""Name -> bytes of the file, and words of the answer."""

_BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)

YAML: Mapping[str, tuple[str, str]] = {
    "a key twice": ("name: a\nrun: [b]\nname: c\n", ":3: the key 'name' is there already in line 1"),
    "a key twice inside": (
        "requires:\n  cpus: 1\n  cpus: 2\n",
        ":3: the key 'cpus' is there already in line 2",
    ),
    "a key twice in braces": ("a: {b: 1, b: 1}\n", ":1: the key 'b' is there already in line 1"),
    "an alias of itself": ("a: &a\n  b: *a\n", ":2: the alias '*a' stands within"),
    "aliases that expand": (_BOMB, "more than 100,000 values"),
    "brackets": ("[" * 20_000, ":1: more than 100 lists or mappings"),
    "nested keys": ("{a: " * 150, ":1: more than 100 lists or mappings"),
    "nested dashes": ("- " * 5000, ":1: more than 100 lists or mappings"),
    "two megabytes": ("#" * (2 << 20), "larger than 1 MiB"),
    "a tab": ("a:\n\tb: 1\n", ":2: not valid YAML"),
    "a bracket left open": ("a: [b\n", ":2: not valid YAML"),
    "quotes left open": ('a: "b\n', ":2: not valid YAML"),
    "two colons": ("a: b: c\n", ":1: not valid YAML"),
    "an unknown alias": ("a: *b\n", ":1: not valid YAML: there is no anchor"),
    "an unknown escape": ('a: "\\q"\n', ":1: not valid YAML: a backslash"),
    "two documents": ("a: b\n---\nc: d\n", ":2: not valid YAML: a second document"),
    "two columns": ("a:\n    b: 1\n  c: 2\n", ":3: not valid YAML"),
    "a list below keys": ("a: 1\n- b\n", ":2: not valid YAML"),
    "a percent sign": ("a: %b\n", ":1: not valid YAML"),
}

YAML_VALUES: Mapping[str, tuple[str, str]] = {
    "digits": ("runs: " + "1" * 5000 + "\n", ":1: a number of thousands of digits"),
    "hexadecimal digits": (
        "runs: 0x" + "f" * 5000 + "\n",
        ":1: key 'runs': a number of more than 100 digits",
    ),
    "infinity": ("a:\n  b: .inf\n", ":2: key 'a.b': inf is no finite number"),
    "not a number": ("a: [1, .nan]\n", ":1: key 'a.1': nan is no finite number"),
    "a large number": ("a: 1.0e+308\n", ":1: key 'a': 1e+308 is too large"),
    "an escaped NUL": ('a: "b\\0"\n', ":1: key 'a': text with a NUL"),
    "a tag of Python": ("a: !!python/name:os.system\n", ":1: the tag"),
    "a tag of Ansible": ("a: !vault x\n", ":1: the tag '!vault' is not understood"),
    "a list at the top": ("- a\n", "expected keys and values at the top level"),
    "a number at the top": ("3\n", "expected keys and values at the top level"),
    "a key that is a list": ("? [a]\n: b\n", ":1: not valid YAML: a key must be a word"),
}
"""What is wrong in what the text means; Ansible has its own tags."""

TOML: Mapping[str, tuple[str, str]] = {
    "a key twice": ("a = 1\nb = 2\na = 3\n", ":3: the key 'a' is there already in line 1"),
    "a table twice": ("[a]\n[b]\n[a]\n", ":3: the key 'a' is there already in line 1"),
    "a key in braces twice": ("a = {b = 1, b = 2}\n", ":1: the key 'b' is there already in line 1"),
    "a table over a value": ("a = 1\n[a]\n", ":2: the key 'a' is there already in line 1"),
    "a dotted key twice": ("a.b = 1\na.b = 2\n", ":2: the key 'a.b' is there already in line 1"),
    "brackets": ("a = " + "[" * 3000, "more than 100 lists or mappings"),
    "braces": ("a = " + "{a = " * 1500, "more than 100 lists or mappings"),
    "dots": ("a" + ".b" * 500 + " = 1\n", "more than 100 lists or mappings"),
    "endless dots": ("a" + ".b" * 500_000 + " = 1\n", ":1: more than 100 lists or mappings"),
    "endless dots in braces": ("x = [\n{ " + "'a'. " * 200_000, ":2: more than 100 lists or mappings"),
    "endless dots of a table": ("[[" + "a." * 500_000 + "a]]\n", ":1: more than 100 lists or mappings"),
    "digits": ("a = 1\nb = " + "1" * 5000 + "\n", ":2: a number of thousands of digits"),
    "a number past all": ("a = 1e309\n", ":1: key 'a': inf is no finite number"),
    "infinity": ("a = [1, inf]\n", ":1: key 'a.1': inf is no finite number"),
    "not a number": ("[a]\nb = nan\n", ":2: key 'a.b': nan is no finite number"),
    "a large number": ("a = -1e308\n", ":1: key 'a': -1e+308 is too large"),
    "an escaped NUL": ('a = "\\u0000"\n', ":1: key 'a': text with a NUL"),
    "no value": ("a =\n", ":1: not valid TOML: a value was expected"),
    "no quotes": ("a = b\n", ":1: not valid TOML: a value was expected"),
    "quotes left open": ('a = "b\n', ":1: not valid TOML"),
    "a list left open": ("a = [1, 2\n", "not valid TOML"),
    "two values": ("a = 1 2\n", ":1: not valid TOML: something follows"),
    "YAML": ("a: 1\n", ":1: not valid TOML"),
    "a backslash": ('a = "\\d"\n', ":1: not valid TOML: a backslash"),
    "two megabytes": ("#" * (2 << 20), "larger than 1 MiB"),
}

JSON: Mapping[str, tuple[str, str]] = {
    "a key twice": ('{"real": [1],\n"real": [2]}', ":2: the key 'real' is there already in line 1"),
    "a key twice inside": ('{"a": {"b": 1,\n\n"b": 2}}', ":3: the key 'a.b' is there already in line 1"),
    "brackets": ("[" * 50_000, "more than 100 lists or mappings"),
    "closed brackets": ("[" * 150 + "]" * 150, "more than 100 lists or mappings"),
    "braces": ('{"a": ' * 150 + "1" + "}" * 150, "more than 100 lists or mappings"),
    "digits": ('{"real": [1,\n' + "1" * 5000 + "]}", ":2: a number of thousands of digits"),
    "a number past all": ('{"real": [1e309]}', ":1: key 'real.0': inf is no finite number"),
    "infinity": ('{"real": [1,\n-Infinity]}', ":2: key 'real.1': -inf is no finite number"),
    "not a number": ('{"real": [NaN]}', ":1: key 'real.0': nan is no finite number"),
    "a large number": ('{"real": [1e308]}', ":1: key 'real.0': 1e+308 is too large"),
    "half a character": ('{"\\ud800": [1]}', "text with a NUL character or half a character"),
    "an escaped NUL": ('{"real": "\\u0000"}', ":1: key 'real': text with a NUL"),
    "cut": ('{"real": [1, 2', ":1: not valid JSON: it ends in the middle"),
    "cut in a text": ('{"rea', ":1: not valid JSON: it ends in the middle"),
    "no quotes": ("{real: [1]}", ":1: not valid JSON: a key in"),
    "no colon": ('{"real" [1]}', ":1: not valid JSON: a ':' was expected"),
    "no comma": ('{"real": [1\n2]}', ":2: not valid JSON: a ',' or the closing bracket"),
    "a comma too many": ('{"real": [1,]}', ":1: not valid JSON"),
    "a comment": ('{"real": [1]} // x', ":1: not valid JSON"),
    "a backslash": ('{"real": "\\q"}', ":1: not valid JSON: a backslash"),
}


def broken(
    kind: str, file: str, arguments: Sequence[str], *tables: Mapping[str, tuple[bytes, str] | tuple[str, str]]
) -> Iterator[Row]:
    """Yield a row for each text of the tables, in a file that a command reads."""
    for table in tables:
        for name, (text, words) in table.items():
            yield Row(f"{kind}: {name}", arguments, [file, words], {file: text})


def not_a_file(kind: str, file: str, arguments: Sequence[str]) -> Iterator[Row]:
    """Yield rows with something else in the place of a file that a command reads."""

    def setup(place: Path, make: str) -> None:
        path = place / file
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        if make == "folder":
            path.mkdir()
        elif make == "pipe":
            os.mkfifo(path)
        elif make == "loop":
            path.symlink_to(path.name)
        else:
            path.symlink_to("/dev/zero")

    for make in ("folder", "pipe", "device", "loop"):
        yield Row(f"{kind}: a {make}", arguments, [], setup=lambda place, make=make: setup(place, make))  # type: ignore[misc]
