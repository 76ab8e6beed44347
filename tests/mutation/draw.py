"""Which mutants are tested: a seeded draw over files, kinds of mutation and places."""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_item import MutationSpec, WorkItem

from tests.mutation import operators
from tests.mutation.places import is_within, silent_places

EQUIVALENT = Path("tests/mutation/equivalent.toml")


@dataclass(frozen=True)
class Place:
    """One kind of mutation at one place of a file, with the alternatives that there are."""

    file: str
    kind: str
    start: tuple[int, int]
    alternatives: tuple[MutationSpec, ...]


@dataclass(frozen=True)
class Mutant:
    """A mutation and what it does to the text."""

    item: WorkItem
    removed: str
    added: str
    diff: str

    @property
    def file(self) -> str:
        """The mutated file, from the root of the tree."""
        return str(self.item.mutations[0].module_path)

    @property
    def where(self) -> str:
        """The place, as editors read it."""
        return f"{self.file}:{self.item.mutations[0].start_pos[0]}"


def places(files: Iterable[Path], root: Path, excluded: Iterable[str]) -> Iterator[Place]:
    """Yield every place of these files where one of cosmic-ray's operators, or ours, can be applied.

    `excluded` holds regular expressions of operators that are left out.
    """
    operators.register()
    unwanted = re.compile("|".join([*excluded, "(?!)"]))
    classes = {name: plugins.get_operator(name) for name in sorted(plugins.operator_names())}
    usable = {name: made() for name, made in classes.items() if not _needs(made) and not unwanted.match(name)}
    for file in files:
        source = (root / file).read_text(encoding="utf-8")
        silent = silent_places(source)
        nodes = list(ast_nodes(get_ast(source)))
        found: dict[tuple[tuple[int, int], str], list[MutationSpec]] = {}
        for name, operator in usable.items():
            positions = ((node, *ends) for node in nodes for ends in operator.mutation_positions(node))
            for occurrence, (node, start, end) in enumerate(positions):
                if not is_within(start, silent):
                    inside = ASTQuery(node).get_definition_name()
                    spec = MutationSpec(file, name, occurrence, start, end, definition_name=inside)
                    found.setdefault((start, kind(name)), []).append(spec)
        for (start, what), specs in found.items():
            yield Place(str(file), what, start, tuple(specs))


def kind(operator: str) -> str:
    """Return the kind of an operator: its name without what is replaced by what."""
    return operator.split("_")[0]


def draw(population: Iterable[Place], number: int, seed: int) -> list[MutationSpec]:
    """Draw `number` mutations, spread over files and kinds in proportion to how many there are.

    Places are sorted by file and kind, and shuffled within; every so manieth is taken from a random start
    (systematic sampling). Every place has the same chance; of its alternatives one is drawn.
    """
    generator = np.random.default_rng(seed)
    listed = sorted(population, key=lambda place: (place.file, place.kind, place.start))
    shuffled = [listed[at] for at in generator.permutation(len(listed))]
    shuffled.sort(key=lambda place: (place.file, place.kind))
    step = max(len(listed) / number, 1)
    taken = np.arange(generator.uniform(0, step), len(listed), step).astype(int)
    chosen = [shuffled[at] for at in taken]
    return [place.alternatives[generator.integers(len(place.alternatives))] for place in chosen]


def mutants(specs: Iterable[MutationSpec], root: Path) -> Iterator[Mutant]:
    """Yield what becomes of each mutation, without those that are no valid Python or change nothing."""
    for spec in specs:
        source = (root / spec.module_path).read_text(encoding="utf-8")
        operator = plugins.get_operator(spec.operator_name)()
        mutated = mutate_code(source, operator, spec.occurrence)
        if not _differs(source, mutated):
            continue
        name = str(spec.module_path)
        lines = list(
            difflib.unified_diff(source.splitlines(), mutated.splitlines(), name, name, "", "", 1, "")
        )
        identity = hashlib.sha256(f"{name}\0{mutated}".encode()).hexdigest()
        yield Mutant(
            WorkItem.single(identity, spec),
            _joined(line[1:] for line in lines[2:] if line.startswith("-")),
            _joined(line[1:] for line in lines[2:] if line.startswith("+")),
            "\n".join(lines[2:]),
        )


def equivalent_mutants(root: Path) -> set[tuple[str, str, str]]:
    """Return file, old and new text of the listed mutants that no test can kill."""
    entries = tomllib.loads((root / EQUIVALENT).read_text(encoding="utf-8")).get("equivalent", [])
    assert all(entry["reason"] for entry in entries)
    return {(entry["file"], _joined([entry["old"]]), _joined([entry["new"]])) for entry in entries}


def is_equivalent(mutant: Mutant, listed: set[tuple[str, str, str]]) -> bool:
    """Return whether a mutant is in the list: same file, same lines, wherever they are now."""
    return (mutant.file, mutant.removed, mutant.added) in listed


def _joined(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def _needs(operator: object) -> bool:
    """Return whether an operator has arguments, which nobody gives here."""
    return bool(getattr(operator, "arguments", tuple)())


def _differs(source: str, mutated: str) -> bool:
    try:
        return ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False
