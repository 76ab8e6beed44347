"""What authors said of their own numbers, said again by `perfbisect compare` (see published/README.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bisector.interfaces.cli import run
from tests.support.expected import check

PUBLISHED = Path(__file__).parent / "published"
PRINTED: dict[str, dict[str, list[float]]] = json.loads((PUBLISHED / "printed.json").read_text())
COUNTERS = ("instructions", "cycles", "branches", "elapsed")

Capture = pytest.CaptureFixture[str]


def compared(capsys: Capture, *arguments: str) -> str:
    places = [str(PUBLISHED / a) if (PUBLISHED / a).exists() else a for a in arguments]
    code = run(["compare", *places])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def as_data(capsys: Capture, *arguments: str) -> Any:
    return json.loads(compared(capsys, *arguments, "--json"))


def metrics(sheet: Any, testbed: str = "") -> dict[str, Any]:
    (found,) = [t for t in sheet["testbeds"] if t["testbed"] == testbed]
    return {m["name"]: m for m in found["metrics"]}


def assert_as_printed(base: float, other: float, printed: float, halves: tuple[float, float]) -> None:
    """Check a printed percentage of base against what rounding of all three numbers allows."""
    ends = [
        100 * ((other + y) - (base + x)) / (base + x)
        for x in (-halves[0], halves[0])
        for y in (-halves[1], halves[1])
    ]
    assert min(ends) - 0.005 - 1e-9 <= printed <= max(ends) + 0.005 + 1e-9


# --- hrtimer: eight runs a side, one of them far off -------------------------------------------------------


def test_hrtimer_averages_and_change(capsys: Capture) -> None:
    sheet = as_data(capsys, "hrtimer-without-968320b.txt", "hrtimer-with-968320b.txt")
    real = metrics(sheet)["real"]
    assert [round(c["mean"], 6) for c in real["cells"]] == [5.32425, 7.202]
    assert [round(c["mean"], 6) for c in metrics(sheet)["user"]["cells"]] == [0.11175, 0.075375]
    assert [round(c["mean"], 6) for c in metrics(sheet)["sys"]["cells"]] == [2.28575, 3.20625]
    (found,) = real["comparisons"]
    assert round(100 * found["mean"]["estimate"], 2) == 35.27
    assert (found["verdict"], found["word"], found["significant"]) == ("worse", "slower", True)
    assert real["cells"][1]["mean"] - real["cells"][0]["mean"] == pytest.approx(1.87775)


def test_hrtimer_outlier_is_named_and_changes_no_conclusion(capsys: Capture) -> None:
    sheet = as_data(capsys, "hrtimer-without-968320b.txt", "hrtimer-with-968320b.txt")
    (found,) = metrics(sheet)["real"]["comparisons"]
    assert [[(o["value"], o["run"]) for o in side] for side in found["outliers"]] == [[], [(9.269, 4)]]
    assert any("9.269 s (run 4) is an outlier" in w for w in found["warnings"])
    assert any("without it" in w and "the conclusion is the same" in w for w in found["warnings"])


@pytest.mark.parametrize("form", ["people", "runs", "mmtests", "perf-stat", "robot"])
def test_hrtimer_in_every_form(form: str, capsys: Capture) -> None:
    out = compared(capsys, "hrtimer-without-968320b.txt", "hrtimer-with-968320b.txt", "--format", form)
    check(f"published/hrtimer-{form}.txt", out)


def test_hrtimer_table_of_runs_says_what_the_author_says(capsys: Capture) -> None:
    out = compared(capsys, "hrtimer-without-968320b.txt", "hrtimer-with-968320b.txt", "--format", "runs")
    for text in ("5.32425 s", "7.202 s", "0.075375 s", "real: AVG -35.27% (slower"):
        assert text in out


# --- poundtime: three kernels over thread counts, positive is better ---------------------------------------


@pytest.mark.parametrize(
    ("table", "files"),
    [
        (
            "poundtime",
            ("poundtime-parent-of-6e998916df.json", "poundtime-6e998916df.json", "poundtime-4.7-rc7.json"),
        ),
        ("prefetch", ("prefetch-4.7-rc7.json", "prefetch-patched-4.7-rc7.json")),
        ("prefetch-counters", ("prefetch-counters-before.json", "prefetch-counters-after.json")),
    ],
)
def test_percentages_of_the_gain(table: str, files: tuple[str, ...], capsys: Capture) -> None:
    found = metrics(as_data(capsys, *files))
    assert set(PRINTED[table]) <= set(found)
    for name, printed in PRINTED[table].items():
        base, *others = [c["mean"] for c in found[name]["cells"]]
        half = 0.5 if name.startswith("cycles") else 0.005
        for other, gain, comparison in zip(others, printed, found[name]["comparisons"], strict=True):
            assert_as_printed(base, other, -gain, (half, half))
            assert 100 * comparison["mean"]["estimate"] == pytest.approx(100 * (other - base) / base)
            assert comparison["better"] == "lower"
            word = comparison["word"]
            assert word.split(", ")[-1] in (("slower", "worse") if gain < 0 else ("faster", "better"))


def test_poundtime_as_mmtests_shows_it(capsys: Capture) -> None:
    out = compared(
        capsys,
        "poundtime-parent-of-6e998916df.json",
        "poundtime-6e998916df.json",
        "poundtime-4.7-rc7.json",
        "--format",
        "mmtests",
    )
    check("published/poundtime-mmtests.txt", out)
    rows = re.findall(r"^Amean +(\S+)((?: +[\d.]+ \( *-?[\d.]+%\)){3})$", out, re.MULTILINE)
    assert {name for name, _ in rows} == set(PRINTED["poundtime"])
    for name, cells in rows:
        shown = [float(p) for p in re.findall(r"\( *(-?[\d.]+)%\)", cells)]
        # two decimals of 2 to 6 seconds: half a hundredth of both moves a percentage by up to 0.7
        assert shown == pytest.approx([0.0, *PRINTED["poundtime"][name]], abs=0.7)


def test_cycles_with_their_spread_as_perf_stat_shows_them(capsys: Capture) -> None:
    out = compared(
        capsys, "prefetch-counters-before.json", "prefetch-counters-after.json", "--format", "perf-stat"
    )
    check("published/prefetch-counters-perf-stat.txt", out)
    for row in (
        r"cycles-2 +19,699,563,964 +\+-1.19% +17,358,917,517 +\+-1.85% +11.88%",
        r"cycles-128 +348,384,794,006 +\+-0.50% +292,691,648,206 +\+-0.66% +15.99%",
        r"L1-miss-percent-5 +13.09\d* +\+-4.74% +13.52\d* +\+-3.73% +-3.28%",
    ):
        assert re.search(row, out), row


# --- bandwidth control: three machines, unconstrained and under two quotas ---------------------------------

PAIRS = {
    "bandwidth-W1": ("bandwidth-W1-BWC.json", "bandwidth-W1-BWC_JL.json"),
    "bandwidth-W2": ("bandwidth-W2-BWC.json", "bandwidth-W2-BWC_JL.json"),
    "bandwidth-again-JL": ("bandwidth-again-JL-BWC_JL.json", "bandwidth-again-JL-BWC_JL-again.json"),
    "bandwidth-again": ("bandwidth-again-BWC.json", "bandwidth-again-BWC-again.json"),
}


def test_all_brackets_are_there() -> None:
    assert sum(len(row) for table in PAIRS for row in PRINTED[table].values()) == 88


@pytest.mark.parametrize("table", PAIRS)
def test_brackets_of_the_relative_tables(table: str, capsys: Capture) -> None:
    out = compared(capsys, *PAIRS[table], "--format", "perf-stat")
    sheet = as_data(capsys, *PAIRS[table])
    for testbed, printed in PRINTED[table].items():
        found = metrics(sheet, testbed)
        line = re.search(rf"^{re.escape(testbed)} .*\n\[.*\n\+(.*)$", out, re.MULTILINE)
        assert line is not None
        shown = [float(x) for x in re.findall(r"\(([-+][\d.]+)\)", line[1])]
        for name, bracket, said in zip(COUNTERS, printed, shown, strict=False):
            base, other = (c["mean"] for c in found[name]["cells"])
            half = 5e-10 if name == "elapsed" else 0.5
            assert_as_printed(base, other, bracket, (half, half))
            assert said == pytest.approx(bracket, abs=0.0101)  # both round to hundredths


def test_bandwidth_tables_with_what_does_not_agree(capsys: Capture) -> None:
    out = compared(capsys, *PAIRS["bandwidth-W1"], "--format", "perf-stat")
    check("published/bandwidth-perf-stat.txt", out)
    check("published/bandwidth-people.txt", compared(capsys, *PAIRS["bandwidth-W1"]))
    flat = " ".join(out.split())
    assert "The metrics disagree: on westmere unconstrained, BWC_JL is better by branches -1.50%" in flat
    assert "but worse by elapsed +8.62% (slower" in flat


def test_a_kernel_against_itself(capsys: Capture) -> None:
    out = compared(capsys, *PAIRS["bandwidth-again-JL"], "--same-kernel")
    assert "One kernel against itself: its means differ by up to 2.83% (ipc)" in " ".join(out.split())


@pytest.mark.parametrize(
    ("quota", "ipc"),
    [("unconstrained", (1.156, 1.063)), ("quota-1000", (1.154, 1.066)), ("quota-1000000", (1.148, 1.071))],
)
def test_instructions_per_cycle_of_the_raw_counters(
    quota: str, ipc: tuple[float, float], capsys: Capture
) -> None:
    sheet = as_data(capsys, f"westmere-BWC-{quota}.txt", f"westmere-BWC_JL-{quota}.txt")
    cells = metrics(sheet)["ipc"]["cells"]
    assert tuple(round(c["mean"], 3) for c in cells) == ipc
    (time,) = metrics(sheet)["elapsed"]["comparisons"]
    assert (time["verdict"], time["a"]["runs"]) == ("worse", 50)


def test_sizes_of_two_kernels(capsys: Capture) -> None:
    check("published/sizes.txt", compared(capsys, "sizes.txt"))


# --- throughput: higher is better --------------------------------------------------------------------------


def test_jops_are_better_when_higher(capsys: Capture) -> None:
    found = metrics(as_data(capsys, "jops-before.txt", "jops-after.txt"))
    said = {
        name: (round(100 * m["comparisons"][0]["mean"]["estimate"], 2), m["better"])
        for name, m in found.items()
    }
    assert said == {"Max-jOPs": (0.93, "higher"), "Critical-jOps": (5.55, "higher")}
    out = compared(capsys, "jops-before.txt", "jops-after.txt")
    check("published/jops.txt", out)
    assert "+0.93% faster" in out
    assert "+5.55% faster" in out


# --- profiles ----------------------------------------------------------------------------------------------


def profiled(capsys: Capture, *arguments: str) -> str:
    code = run(["profile", *arguments])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


DATABASE = (
    f"2.6.18-92.el5={PUBLISHED / 'database-2.6.18-92.el5.oprofile'}",
    f"2.6.30={PUBLISHED / 'database-2.6.30.oprofile'}",
)
TICK = (f"before={PUBLISHED / 'tick-before.profile'}", f"after={PUBLISHED / 'tick-after.profile'}")


def test_database_profiles_side_by_side_row_by_row(capsys: Capture) -> None:
    out = profiled(capsys, *DATABASE, "--top", "42")
    check("published/database-profile.txt", out)
    sides = [
        re.findall(r"^([\d.]+) (\S+)$", Path(place.split("=")[1]).read_text(), re.MULTILINE)
        for place in DATABASE
    ]
    assert [len(side) for side in sides] == [42, 42]
    rows = re.findall(r"^(\d+) +([\d.]+)% +(\S+) +([\d.]+)% +(\S+)$", out, re.MULTILINE)
    assert [row[1:] for row in rows] == [(*a, *b) for a, b in zip(*sides, strict=True)]


def test_database_deltas_by_symbol(capsys: Capture) -> None:
    sheet = json.loads(profiled(capsys, *DATABASE, "--json"))
    points = {s["name"]: (round(100 * s["points"], 4), s["at_least"]) for s in sheet["symbols"]}
    assert points["mpt_interrupt"] == (0.3473, False)
    assert points["kmem_cache_alloc"] == (0.5329, False)
    assert points["kmem_cache_free"] == (0.0555, False)
    assert points["memmove"] == (-0.0309, False)
    assert points["plist_del"] == (0.0270, True)  # new in 2.6.30: below the older list's last line before
    assert points["<database>"] == (-3.1202, False)


def test_tick_profile_with_all_that_is_called(capsys: Capture) -> None:
    out = profiled(capsys, *TICK)
    check("published/tick-profile.txt", out)
    for row in (
        r"\[k\] smp_apic_timer_interrupt +10.52% +9.44% +-1.08 +less",
        r"\[k\] update_cfs_shares +5.24% +4.15% +-1.09 +less",
        r"\[k\] update_cfs_shares +5.04% +3.92% +-1.12 +less",
    ):
        assert re.search(row, out), row


def test_profile_errors(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, said in (
        ((*TICK, "--flame", "x.svg"), "before and after: no call chains"),
        ((*TICK, "--tree", "x", "--least", "5"), "--least: '5' has no unit"),
        (("-", "-"), "standard input can be read only once"),
        ((TICK[0], str(PUBLISHED / "jops-after.txt")), "not a profile in a known format"),
        ((*TICK, "--commit", "v6.2"), "not in a git repository"),
    ):
        assert run(["profile", *arguments]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert said in err
