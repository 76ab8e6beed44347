"""What a message tells users to do can be done: targets, commands, options, variables and files exist.

Read from the source: every text that is passed as `cure=`. A value that is put in at run time reads as `X`.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from bisector.errors import InfrastructureError, KernelError, PerfbisectError
from bisector.interfaces.cli.application import application
from bisector.schemas.lab import VARIABLE_PREFIX, BuilderVariables
from bisector.schemas.machine.testbed_variables import TestbedVariables
from bisector.schemas.settings import TOKEN_VARIABLE, Settings
from bisector.schemas.settings import VARIABLE_PREFIX as ENVIRONMENT_PREFIX
from tests.support.command_line import parse

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "bisector").rglob("*.py"))}

OTHER_PROGRAMS = re.compile(
    r"\b(ansible-inventory|git|pip|podman|ssh-keyscan|apt-get|systemctl|createdb)\b[^;']*|'\.\.\. [^']*'"
)
"""Commands of other programs, up to the end of their quotes: their options are not ours."""

COMMAND = re.compile(r"(?:^|'|: )(perfbisect [^;,'(\n]*)")
TARGET = re.compile(r"'make ([a-z-]+)'|^make ([a-z-]+)(?:$|\s{2})")


def texts(value: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression can be."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in parts)
        case ast.IfExp(body=body, orelse=orelse):
            yield from texts(body)
            yield from texts(orelse)
        case ast.BoolOp(values=values):
            for one in values:
                yield from texts(one)


def error_classes() -> dict[str, type[PerfbisectError]]:
    """Return name -> class of all errors of the package that users read."""

    def below(kind: type[PerfbisectError]) -> Iterator[type[PerfbisectError]]:
        yield kind
        for one in kind.__subclasses__():
            yield from below(one)

    for name in SOURCES:
        importlib.import_module(name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
    return {kind.__name__: kind for kind in below(PerfbisectError) if kind.__module__.startswith("bisector.")}


def cures() -> list[tuple[str, str]]:
    return [
        (f"{name}:{keyword.value.lineno}", text)
        for name, path in SOURCES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "cure"
        for text in texts(keyword.value)
    ] + [
        (f"bisector/errors.py:{name}", kind.usual_cure)
        for name, kind in error_classes().items()
        if "usual_cure" in vars(kind) and kind.usual_cure
    ]


def known_options() -> set[str]:
    def walk(command: Any) -> Iterator[str]:
        for parameter in command.params:
            yield from parameter.opts
        for below in getattr(command, "commands", {}).values():
            yield from walk(below)

    return {"--help", *walk(typer.main.get_command(application()))}


CURES = cures()
OPTIONS = known_options()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
HOST_VARIABLES = {VARIABLE_PREFIX + n for m in (TestbedVariables, BuilderVariables) for n in m.model_fields}
VARIABLES = {ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields} | {TOKEN_VARIABLE}


def test_cures_are_found() -> None:
    assert len(CURES) > 100


@pytest.mark.parametrize(("where", "cure"), CURES, ids=[where for where, _ in CURES])
def test_what_a_cure_names_exists(where: str, cure: str) -> None:
    assert {a or b for a, b in TARGET.findall(cure)} <= TARGETS
    for line in COMMAND.findall(cure):
        parse(line)
    assert set(re.findall(r"--[a-z][a-z-]+", OTHER_PROGRAMS.sub("", cure))) <= OPTIONS
    assert set(re.findall(rf"\b{VARIABLE_PREFIX}[a-z_]+\b", cure)) <= HOST_VARIABLES
    assert set(re.findall(rf"\b{ENVIRONMENT_PREFIX}[A-Z_]+\b", cure)) <= VARIABLES
    for file in re.findall(r"\b(?:kernels|playbooks|workloads)/[\w./-]*\w", cure):
        assert (ROOT / file).exists()


def test_documents_that_the_source_names_exist() -> None:
    folders = ("bisector", "docs", "kernels", "playbooks", "tests", "workloads")
    there = {path.name for folder in folders for path in (ROOT / folder).rglob("*.md")}
    there |= {path.name for path in ROOT.glob("*.md")}
    named = {
        (name, file)
        for name, path in SOURCES.items()
        for file in re.findall(r"[\w-]+\.md\b", path.read_text(encoding="utf-8"))
    }
    assert {(name, file) for name, file in named if file not in there} == set()


WITHOUT_A_CURE = {
    "bisector/adapters/store/memory_store.py": (2, "a store of tests"),
    "bisector/testing/fake_testbed.py": (1, "a fake"),
    "bisector/testing/fakes.py": (4, "a fake"),
}
"""Files with errors that have no cure: how many, and why. These numbers only shrink."""

NO_REFUSALS = {"Interrupted"}
"""Errors that say what the user has done; nothing is wrong."""


def errors_without_a_cure() -> dict[str, list[int]]:
    """Return file -> lines that make an error which has no cure, neither its own nor that of its class."""
    classes = error_classes()
    found: dict[str, list[int]] = {}
    for name, path in SOURCES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or any(one.arg == "cure" for one in node.keywords):
                continue
            made = getattr(node.func, "id", getattr(node.func, "attr", ""))
            kind = classes.get(made)
            if kind is not None and "__init__" in vars(kind) and kind is not PerfbisectError:
                continue  # it gives a cure to the class below it, which is a call of its own
            if kind is not None and not kind.usual_cure and made not in NO_REFUSALS:
                found.setdefault(name, []).append(node.lineno)
    return found


def test_an_error_has_a_cure() -> None:
    found = errors_without_a_cure()
    assert found, "the search finds errors"
    for name, lines in found.items():
        assert len(lines) <= WITHOUT_A_CURE.get(name, (0, ""))[0], f"{name}, lines {lines}: no cure"
    assert found.keys() >= WITHOUT_A_CURE.keys(), "a file that gives a cure everywhere leaves the list"


def test_errors_that_machines_cause_have_the_cure_of_their_class() -> None:
    classes = error_classes()
    assert len(classes) > 12
    for kind in classes.values():
        assert kind.usual_cure or not issubclass(kind, InfrastructureError | KernelError), kind
