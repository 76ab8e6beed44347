"""Who may import whom: the house rules of the architecture, read from the source text itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "bisector").rglob("*.py"))

# layer -> the layers it may import besides itself. `errors` and `resources` are for everyone but core,
# which may import `errors` alone.
LAYERS = {
    "errors": (),
    "resources": (),
    "core": (),
    "spec": ("core",),
    "ports": ("core",),
    "adapters": ("ports", "spec", "core"),
    "engine": ("ports", "spec", "core"),
    "bootstrap": ("engine", "adapters", "ports", "spec", "core", "simulation"),
    "simulation": ("engine", "adapters", "ports", "spec", "core", "bootstrap"),
    "interfaces": ("bootstrap", "engine", "spec", "core", "simulation"),
}

# technology -> the only modules (by beginning of their name) that may import it.
OWNERS = {
    "git": ("bisector.adapters.git_",),
    "libvirt": ("bisector.adapters.libvirt_",),
    "paramiko": ("bisector.adapters.ssh",),
    "ansible_runner": ("bisector.adapters.ansible",),
    "sqlalchemy": ("bisector.adapters.store",),
    "dbos": ("bisector.engine.",),
    "subprocess": ("bisector.adapters.process",),
}


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative imports hide the layer"
            module = node.module or ""
            if module == "bisector":
                yield from ((node.lineno, f"bisector.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_each_module_imports_only_what_its_layer_may(path: Path) -> None:
    layer = _layer(_name(path))
    if not layer:
        return
    assert layer in LAYERS, f"{path}: the layer '{layer}' is not in the architecture"
    allowed = {layer, *LAYERS[layer], "errors"} | (set() if layer == "core" else {"resources"})
    for line, target in _imports(path):
        if target.startswith("bisector.") and target != "bisector.__version__":
            assert _layer(target) in allowed, f"{path}:{line}: {layer} must not import {target}"


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_each_technology_stays_in_its_own_adapter(path: Path) -> None:
    module = _name(path)
    for line, target in _imports(path):
        owners = OWNERS.get(target.split(".")[0])
        if owners is not None:
            assert module.startswith(owners), f"{path}:{line}: only {', '.join(owners)} may import {target}"


def test_core_is_pure() -> None:
    """No files, clock, network, logging or hidden randomness in the core."""
    impure = {"os", "pathlib", "time", "datetime", "socket", "logging", "random", "subprocess", "tempfile"}
    for path in MODULES:
        if _layer(_name(path)) == "core":
            for line, target in _imports(path):
                assert target.split(".")[0] not in impure, f"{path}:{line}: core must not import {target}"
