"""Processors that can be modelled: the shipped rows are whole; what none can be is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.resources import resource
from bisector.schemas.kernel.cpu_model import cpu_model, load_cpu_models

ROW = """\
[[cpu]]
name = "toy"
model = "Toy, 2020"
source = "nowhere"
L1i = { size = 32768, ways = 8, line = 64 }
L1d = { size = 32768, ways = 8, line = 64 }
L2 = { size = 262144, ways = 4, line = 64 }
LL = { size = 8388608, ways = 16, line = 64 }
iTLB = { entries = 128, ways = 8 }
dTLB = { entries = 64, ways = 4 }
sTLB = { entries = 1536, ways = 12 }
predictor = { table_bits = 14, history_bits = 12 }
cycles = { L2 = 12, LL = 42, memory = 240, branch = 16, sTLB = 7, walk = 30 }
"""


def test_three_real_processors_each_with_its_source() -> None:
    rows = load_cpu_models()
    assert len(rows) >= 3
    for row in rows:
        assert row.model.rpartition(", ")[2].isdigit()  # the year
        assert row.L1d.size < row.L2.size < row.LL.size
        assert row.cycles.L2 < row.cycles.LL < row.cycles.memory
        assert row.model in row.summary()
        named = {*type(row.cycles).model_fields, *type(row).model_fields}
        assert set(row.estimates) <= named
        assert f"estimates: {', '.join(row.estimates)}" in row.summary()
    assert cpu_model("") == rows[0]
    assert cpu_model(rows[1].name) == rows[1]


def test_an_unknown_processor_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(RequestError, match="no processor 'nehalm'; did you mean 'nehalem'") as refused:
        cpu_model("nehalm")
    assert "Skylake" in refused.value.details


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("size = 262144", "size = 262145", ":7: key 'cpu.0.L2.size'"),
        ("ways = 4, line", "ways = 0, line", ":7: key 'cpu.0.L2.ways'"),
        ("entries = 1536", "entries = 1537", ":11: key 'cpu.0.sTLB.entries'"),
        ("history_bits = 12", "history_bits = 15", ":12: key 'cpu.0.predictor.history_bits'"),
        ("memory = 240", "memory = -1", ":13: key 'cpu.0.cycles.memory'"),
        ('name = "toy"', 'name = "Toy 1"', ":2: key 'cpu.0.name'"),
        ('source = "nowhere"', "", "the key 'cpu.0.source' is missing"),
        (ROW, "", "'cpu'"),
        (ROW, ROW + ROW, "'toy' has a row already"),
    ],
)
def test_what_no_processor_can_be_is_refused(tmp_path: Path, old: str, new: str, where: str) -> None:
    (tmp_path / "cpus.toml").write_text(ROW.replace(old, new))
    with pytest.raises(RequestError) as refused:
        load_cpu_models(tmp_path)
    assert where in refused.value.message
    (tmp_path / "cpus.toml").write_text(ROW)
    assert load_cpu_models(tmp_path)[0].name == "toy"


def test_the_limits_are_those_of_the_plugin() -> None:
    source = resource("kernels").parent / "bisector/adapters/guest/files/counters/memory_model.c"
    assert "LEVEL_BYTES_MAX = 1 << 30, WAYS_MAX = 4096" in source.read_text()
