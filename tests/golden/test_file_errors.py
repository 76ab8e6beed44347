"""Mistakes in files that users write, word for word: manifests, inventories, settings, tables of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bisector.errors import RequestError
from bisector.schemas.kernel.build_plan import Tables
from bisector.schemas.kernel.recipe import load_recipe
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import load_settings
from bisector.schemas.workload.workload import load_workload
from tests.support.expected import check

MANIFEST = """\
name: mine
description: a workload of my own
run: [./mine, "{size}"]
files: [mine]
parameters: {size: 1, threads: [1, 2]}
setup: [[./mine, "{size}"]]
metrics:
  - name: real
    unit: s
    better: lower
    threshold: 5%
    decides: true
  - {name: user, unit: s, better: lower, threshold: 5%}
"""

MANIFESTS: Mapping[str, tuple[str, str]] = {
    "a key that is missing": ("name: mine\n", ""),
    "a key that is not known": ("files:", "fiels:"),
    "a name with capitals": ("name: mine", "name: Mine"),
    "a direction that is none": ("better: lower\n", "better: faster\n"),
    "a number for a text": ("unit: s\n", "unit: 3\n"),
    "a text for a list": ("files: [mine]", "files: mine"),
    "a list for a mapping": ("parameters: {size: 1, threads: [1, 2]}", "parameters: [size]"),
    "a file that is not there": ("files: [mine]", "files: [mine, yours]"),
    "a program outside of the folder": ("run: [./mine", "run: [/bin/mine"),
    "an empty command": ("setup: [[./mine, ", "setup: [[], [./mine, "),
    "an unknown parameter": ('run: [./mine, "{size}"]', 'run: [./mine, "{siez}"]'),
    "a list of values in a setup": ('setup: [[./mine, "{size}"]]', 'setup: [[./mine, "{threads}"]]'),
    "a parameter twice the same": ("threads: [1, 2]", "threads: [2, 2]"),
    "a parameter without a value": ("threads: [1, 2]", "threads: []"),
    "a parameter with a bad name": ("threads: [1, 2]", "Threads: [1, 2]"),
    "a parameter called block_device": ("size: 1", "block_device: 1"),
    "a disk without a size": ('run: [./mine, "{size}"]', 'run: [./mine, "{block_device}"]'),
    "a disk of an unknown size": ("files:", "requires: {block_device: large}\nfiles:"),
    "a deciding value that is none": ("files:", "decides_at: {threads: 3}\nfiles:"),
    "a program without files or packages": ("files: [mine]\n", ""),
    "results outside of the folder": ("files:", "results: ../out\nfiles:"),
    "results over a serial line": ("files:", "results: out\nuserspaces: [initramfs]\nfiles:"),
    "results that are not named": ("files:", "parse: results\nfiles:"),
    "results of a matrix": ("files:", "parse: results\nresults: out\nfiles:"),
    "a threshold without a unit": ("threshold: 5%\n", "threshold: 5\n"),
    "a threshold of text": ("threshold: 5%\n", "threshold: much\n"),
    "a threshold of zero": ("threshold: 5%\n", "threshold: 0%\n"),
    "a threshold in another unit": ("threshold: 5%\n", "threshold: 5 ms\n"),
    "no metric": ("metrics:", "metrics: []\nmetric:"),
    "a metric twice": ("name: user", "name: real"),
    "two deciding metrics": ("5%}", "5%, decides: true}"),
    "no deciding metric": ("    decides: true\n", ""),
    "a deciding metric that is optional": ("decides: true", "decides: true\n    optional: true"),
    "a ratio of one": ("threshold: 5%}", "threshold: 5%, ratio: real}"),
    "a ratio of an unknown metric": ("threshold: 5%}", "threshold: 5%, ratio: rael / real}"),
    "a ratio with a place": ("threshold: 5%}", "threshold: 5%, at: x, ratio: real / real}"),
    "a pattern that is none": ("files:", "parse: regex\nfiles:"),
    "a pattern that is broken": ("threshold: 5%}", "threshold: 5%, at: '('}\nparse: regex"),
    "a monitor that is unknown": ("files:", "monitors: [perf-stats]\nfiles:"),
    "a monitor with an unknown key": ("files:", "monitors: {perf-stat: {event: [x]}}\nfiles:"),
    "a monitor of other files": ("files:", "monitors: {proc: {files: [/etc/passwd]}}\nfiles:"),
    "a setting that is unknown": ("files:", "environment: {govenor: performance}\nfiles:"),
    "a setting of another value": ("files:", "environment: {thp: sometimes}\nfiles:"),
    "a list of CPUs that is none": ("files:", "environment: {cpus: all}\nfiles:"),
    "a priority out of range": ("files:", "environment: {nice: 20}\nfiles:"),
}

HOSTS: Mapping[str, Mapping[str, Any]] = {
    "an unknown variable": {"perfbisect_memroy_mb": 512},
    "an unknown key in a variable": {"perfbisect_power": {"cycles": ["x"]}},
    "an unknown clock": {"perfbisect_clock": "fast"},
    "too little memory": {"perfbisect_memory_mb": 4},
    "a command as text": {"perfbisect_power": {"on": "ipmitool"}},
    "no path of a device": {"perfbisect_block_device": "sda"},
    "a device of a guest": {"perfbisect_kind": "libvirt", "perfbisect_block_device": "/dev/sda"},
    "a boot method of a guest": {"perfbisect_kind": "libvirt", "perfbisect_boot_method": "kexec"},
    "a direct boot of a machine": {"perfbisect_boot_method": "direct"},
    "instructions of a machine": {"perfbisect_clock": "instructions"},
    "a command line without a root": {"perfbisect_cmdline": "quiet"},
}

SETTINGS = {
    "a key that is unknown": 'recip = "x"\n',
    "a value out of range": "alpha = 2\n",
    "a value of another type": 'jobs = "all"\n',
    "not TOML": "repo = \n",
}

TOOLCHAIN = '[[toolchain]]\nname = "gcc"\ncompiler = "gcc"\n'

FIXUP = '[[fixup]]\nname = "x"\nfiles = ["a"]\nreplacement = "b"\n'

TABLES = {
    "toolchains.toml": {
        "no release": TOOLCHAIN + 'since = "5.4"\n',
        "an end before the begin": TOOLCHAIN + 'since = "v5.4"\nbefore = "v5.0"\n',
        "two rows for one release": TOOLCHAIN + TOOLCHAIN,
        "a key that is unknown": TOOLCHAIN + TOOLCHAIN.replace("compiler", "compielr"),
        "a container by its tag": TOOLCHAIN + 'driver = "make"\ncontainer = "gcc:10"\n',
        "a container with a package": TOOLCHAIN
        + f'package = "gcc"\ndriver = "make"\ncontainer = "gcc@sha256:{"0" * 64}"\n',
        "a container for tuxmake": TOOLCHAIN + f'container = "gcc@sha256:{"0" * 64}"\n',
        "an archive outside": TOOLCHAIN + f'archive = {{file = "../x", sha256 = "{"0" * 64}"}}\n',
        "a swap of three": TOOLCHAIN + 'swap = {"-a -b -c" = "-d"}\n',
    },
    "fixups.toml": {
        "no expression": FIXUP + 'pattern = "("\nwhy = "c"\n',
        "no reason": FIXUP + 'pattern = "a"\n',
    },
    "options.toml": {"a prefix": '[[option]]\nname = "CONFIG X"\n'},
}

RECIPE = 'summary = "s"\narch = "x86_64"\nrequired = ["one"]\n'

RECIPES = {
    "an architecture that is unknown": (RECIPE.replace("x86_64", "sparc"), "CONFIG_A=y\n"),
    "a fragment that is unknown": (RECIPE.replace("one", "on"), "CONFIG_A=y\n"),
    "a line that is no option": (RECIPE, "CONFIG_A=y\nA=y\n"),
    "two values of an option": (RECIPE, "CONFIG_A=y\nCONFIG_A=n\n"),
    "a base that is not there": (RECIPE + 'base = "old.config"\n', "CONFIG_A=y\n"),
    "a base without options": (RECIPE + 'base = "empty.config"\n', "CONFIG_A=y\n"),
}


def report(mistakes: Mapping[str, Callable[[], object]], place: Path) -> str:
    """Make each mistake, and return what it is told."""
    told = []
    for name, make in mistakes.items():
        with pytest.raises(RequestError) as caught:
            make()
        error = caught.value
        lines = [error.message, *(f"  {line}" for line in error.details.splitlines())]
        lines += [f"cure: {error.cure}"] if error.cure else []
        told.append("\n".join([f"{name}:", *(f"    {line}" for line in lines)]))
    return "\n".join(told).replace(str(place), "PLACE") + "\n"


def test_manifests(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("#!/bin/sh\n")

    def load(old: str, new: str) -> object:
        assert old in MANIFEST
        (tmp_path / "workload.yaml").write_text(MANIFEST.replace(old, new, 1))
        return load_workload(str(tmp_path))

    (tmp_path / "workload.yaml").write_text(MANIFEST)
    load_workload(str(tmp_path))
    mistakes = {name: partial(load, *change) for name, change in MANIFESTS.items()}
    check("errors/files/manifests.txt", report(mistakes, tmp_path))


def test_inventories() -> None:
    def load(variables: Mapping[str, Any]) -> object:
        data = {"_meta": {"hostvars": {"bed": variables}}, "testbeds": {"hosts": ["bed"]}}
        return lab_from_inventory(data, Path("lab.yml"))

    mistakes = {name: partial(load, given) for name, given in HOSTS.items()}
    check("errors/files/inventories.txt", report(mistakes, Path("lab.yml")))


def test_settings(tmp_path: Path) -> None:
    file = tmp_path / "perfbisect.toml"

    def load(text: str) -> object:
        file.write_text(text)
        return load_settings(file, environment={})

    def load_variables(environment: Mapping[str, str]) -> object:
        file.unlink(missing_ok=True)
        return load_settings(start=tmp_path, environment=environment)

    mistakes = {name: partial(load, text) for name, text in SETTINGS.items()}
    variables = {
        "a misspelt variable": {"PERFBISECT_RECIP": "x"},
        "a wrong variable": {"PERFBISECT_JOBS": "0"},
    }
    for name, variable in variables.items():
        mistakes[name] = partial(load_variables, variable)
    check("errors/files/settings.txt", report(mistakes, tmp_path))


@pytest.mark.parametrize("file", TABLES)
def test_tables(file: str, tmp_path: Path) -> None:
    def load(text: str) -> object:
        (tmp_path / file).write_text(text)
        return Tables.load(tmp_path)

    mistakes = {name: partial(load, text) for name, text in TABLES[file].items()}
    check(f"errors/files/{file.removesuffix('.toml')}.txt", report(mistakes, tmp_path))


def test_recipes(tmp_path: Path) -> None:
    for folder in ("recipes", "configs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "configs" / "empty.config").write_text("# nothing\n")

    def load(recipe: str, fragment: str) -> object:
        (tmp_path / "recipes" / "r.toml").write_text(recipe)
        (tmp_path / "configs" / "one.config").write_text(fragment)
        return load_recipe("r", tmp_path)

    mistakes = {name: partial(load, *texts) for name, texts in RECIPES.items()}
    check("errors/files/recipes.txt", report(mistakes, tmp_path))
