"""Every reader of text from guests and other programs: any text, and real samples with wrong parts.

A reader gives finite numbers or its documented error, nothing else, and its time is linear in the text.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bisector.adapters.agent.answers import AnswerError, parse_answer, parse_facts
from bisector.adapters.agent.monitors import counters, summarise
from bisector.adapters.parsers import key_values, run_files
from bisector.adapters.parsers import profiles as profile_readers
from bisector.adapters.parsers import results as result_readers
from bisector.adapters.parsers.workload_output import OutputError, parse
from bisector.errors import RequestError
from bisector.linux import console_text
from bisector.linux.profile import Profile
from bisector.ports import MetricSpec
from bisector.stats.samples import SampleSet
from tests.support.agent_answers import GREETING, finished_line
from tests.unit.adapters.parsers.profiles import test_profile_format as profiles
from tests.unit.adapters.parsers.results import test_fio, test_perf_stat, test_phoronix

_PUBLISHED = Path(__file__).parents[3] / "golden" / "published"

RESULTS = (
    "1 2 3\n\n4 5 6 # comment\n",
    "real: 1.5 s\nuser: 0.5 s\nreal: 1.6 s\n",
    "real\t0m1.500s\nuser\t0m0.1s\nsys\t0m0.2s\n",
    "0.10user 0.20system 0:09.00elapsed 99%CPU (0avgtext+0avgdata 1572maxresident)k\n",
    "\tUser time (seconds): 0.10\n\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:01.50\n",
    "   text\t   data\t    bss\t    dec\t    hex\tfilename\n1000\t200\t30\t1230\t4ce\tvmlinux\n",
    test_perf_stat.REPEATED,
    "\n".join([test_perf_stat.row("cycles", "10.0", variance=1.5), test_perf_stat.row("x", "<not counted>")]),
    json.dumps(test_fio.fio(100)) + "\n" + json.dumps(test_fio.fio(110)),
    json.dumps(
        {"name": "a", "sets": [{"testbed": "b", "sizes": {"text": 1}, "metrics": {"c": [[1, 2], [3]]}}]}
    ),
    json.dumps({"metrics": {"elapsed": {"mean": 0.194, "error": 0.0044, "runs": 50, "unit": "s"}}}),
    json.dumps({"_TestName": "a", "_PreferredVal": "Higher", "_ResultData": {"H": [{"Values": [10]}, None]}}),
    test_phoronix.phoronix(test_phoronix.phoronix_test(("6.1", "11.3", "<RawString>10:12</RawString>"))),
    json.dumps(
        {
            "systems": {"run": {}},
            "results": {"d": {"identifier": "a-1.0", "results": {"run": {"value": 1, "raw_values": [1]}}}},
        }
    ),
    (_PUBLISHED / "westmere-BWC-quota-1000.txt").read_text(),
    (_PUBLISHED / "poundtime-4.7-rc7.json").read_text()[:4000],
    (_PUBLISHED / "prefetch-counters-after.json").read_text()[:4000],
)
PROFILES = (
    profiles.CHAINS,
    profiles.FLAT,
    profiles.REPORT,
    profiles.OPREPORT,
    "task;outer;inner_[k] 42\ntask;outer 1.5\n",
    "  Function                               Hit    Time            Avg             s^2\n"
    "  --------                               ---    ----            ---             ---\n"
    "  vfs_read                               100    200.5 us        2.005 us        0.1 us \n",
)
OUTPUT = (
    "== a\nreal: 1.5 s\n== b\nreal = 2\nops 5 ops/s\n",
    "real\t0m1.500s\nuser\t0m0.1s\n",
    'starting\n{"real": {"a.b": [1, 2]}, "ops": "3"}\n',
)
CONSOLE = (
    "\x1b[2J\x1bc[    0.0] Linux version 6.1\r\n[    1.0] Kernel panic - not syncing: VFS:\r\n",
    "perfbisect: init\nperfbisect: ready\nBUG: unable to handle page fault\nOops: 0002 [#1] SMP\n",
    "reboot: Power down\nperfbisect: not ready: x\ndouble fault: 0000\nPANIC: early exception\n",
)
MONITORS = {
    "perf-stat": ("stat.json", test_perf_stat.row("cycles", "10.0", variance=1.5)),
    "perf-record": ("perf.script", profiles.CHAINS),
    "ftrace": ("function0", PROFILES[-1]),
    "proc": ("proc:diskstats.after", "   8  0 sda 1 2 3 4 5 6 7 8 9 10 11\ncpu  1 2 3 4\nintr 5 6\n"),
    "dmesg": ("dmesg.after", "[1.0] WARNING: x\n[2.0] stall on CPU\n"),
}
METRICS = (
    MetricSpec("real", "s", optional=True),
    MetricSpec("ops", "ops/s", r"ops (\S+)", optional=True),
    MetricSpec("real[a]", "s", "real", optional=True, point="a"),
)
EVIL = (
    *("9" * 400, "9" * 5000, "1e999", "-1", "nan", "inf", "-0", "0x10", "1,234", "1_000", "٣", "½", "²"),
    *("\0", "\r", "\x1b[", "\u2028", "\x85", "\x1c", "\n\n", "\t", " " * 300, ":" * 300, "=", ";", "%", "()"),
    *("{", "}", "[", "]", '"', "null", "true", "[" * 3000, '{"a":' * 3000, "<", "<a>", "&", "<not counted>"),
    *("#", "# Samples: 9 of event 'x'", "== ", "us", "real", "cycles", ": ", "[k]", "\ud800"),
)


@st.composite
def _wrong(draw: st.DrawFn, samples: tuple[str, ...]) -> str:
    """Return a sample some of whose parts are replaced, doubled or taken out; or any text."""
    text = draw(st.one_of(st.sampled_from(samples), st.text(max_size=200)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 40))
        part = draw(st.one_of(st.sampled_from(EVIL), st.just(text[start:end] * 2), st.just("")))
        text = text[:start] + part + text[end:]
    return text


FUZZ = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(errors="surrogatepass"))
    return path


def _is_plain(found: SampleSet) -> None:
    for series in found.series.values():
        assert all(math.isfinite(value) for boot in series.boots for value in boot), series
        assert series.error is None or 0 <= series.error < math.inf
        assert series.repeats >= 0
    assert all(0 <= size < 1 << 63 for size in found.sizes.values())


def _results(place: Path) -> None:
    try:
        for found in result_readers.result_format.read(str(place)):
            _is_plain(found)
    except RequestError as error:
        assert error.message and len(error.message) < 500 + len(str(place)), error.message[:2000]


@FUZZ
@given(text=_wrong(RESULTS))
@example(text="1" * 400)
@example(text='{"a": 1' + "0" * 400 + "}")
@example(text='{"a": ' + "[" * 100_000)
@example(text='{"metrics": {"a": {"mean": 1, "runs": NaN}}}')
def test_results(folder: Path, text: str) -> None:
    _results(_written(folder / "results.txt", text))


@FUZZ
@given(text=_wrong((*RESULTS[:6], '{"a": 5.5, "b": [9]}', '{"a": [1, 2]}', *RESULTS[11:13])))
def test_results_in_folders(folder: Path, text: str) -> None:
    for number, name in enumerate(
        ("0/stats.json", "stats.json", "matrix.json", "iter-0/x/logs/time-2-1", "a.json", "composite.xml")
    ):
        place = folder / f"suite-{number}"
        _written(place / name, text)
        if name == "a.json":
            (place / "iter-0").mkdir(exist_ok=True)
        _results(place)


@FUZZ
@given(text=_wrong(RESULTS))
def test_results_of_a_run(folder: Path, text: str) -> None:
    place = _written(folder / "run.txt", text)
    try:
        found = run_files.values(place, (MetricSpec("real", "s", optional=True), MetricSpec("cycles", "")))
    except OutputError as error:
        assert len(str(error)) < 4000
    else:
        assert all(map(math.isfinite, found.values()))


@FUZZ
@given(text=_wrong(PROFILES))
@example(text="a;b " + "9" * 400)
@example(text="a;b 0\n")
@example(text="a;b -1\na;c 1")
def test_profiles(folder: Path, text: str) -> None:
    try:
        found: Profile = profile_readers.read(str(_written(folder / "profile.txt", text)))
    except RequestError:
        return
    for weights in (found.own, found.whole, found.stacks, found.calls, found.spent):
        assert all(0 <= weight < math.inf for weight in weights.values())
    assert 0 < found.total < math.inf
    assert 0 <= found.cut <= 1


@FUZZ
@given(text=_wrong(OUTPUT), kind=st.sampled_from(("key-value", "time", "json", "regex")))
@example(text="[" * 100_000, kind="json")
@example(text='{"real": ' + "9" * 400 + "}", kind="json")
@example(text="real " + "9" * 5000 + "m1s", kind="time")
def test_output_of_a_workload(text: str, kind: str) -> None:
    metrics = METRICS if kind == "regex" else [m for m in METRICS if m.name != "ops"]
    metrics = [m for m in metrics if kind != "regex" or m.name == "ops"]
    try:
        found = parse(kind, text, metrics)
    except OutputError as error:
        assert len(str(error)) < 500
    else:
        assert all(map(math.isfinite, found.values()))


@FUZZ
@given(text=_wrong(tuple(sample for _, sample in MONITORS.values())), monitor=st.sampled_from(list(MONITORS)))
def test_what_a_monitor_left(folder: Path, text: str, monitor: str) -> None:
    name, sample = MONITORS[monitor]
    place = folder / monitor
    _written(place / name.replace("after", "before"), sample)
    _written(place / name, text)
    seen, absent = summarise(monitor, place, 1.0)
    assert all(math.isfinite(one.value) and math.isfinite(one.error or 0.0) for one in seen)
    assert all(len(why) < 5000 for why in absent)
    list(counters.changes(name, sample, text))


@FUZZ
@given(data=st.binary(max_size=300) | _wrong(CONSOLE).map(lambda text: text.encode(errors="replace")))
def test_a_console(data: bytes) -> None:
    text = console_text.clean(data)
    died = console_text.death(text)
    assert died is None or "\n" not in died
    console_text.stage(text)
    assert console_text.tail(text).count("\n") < 3 * 40


@FUZZ
@given(text=_wrong((finished_line(out=b"x"), GREETING, '{"file":"a","data":"eA==","cut":0}', '{"a": "b"}')))
def test_an_answer_of_the_agent(text: str) -> None:
    for read in (parse_answer, parse_facts):
        try:
            read(text)
        except AnswerError as error:
            assert len(error.details) < 8000


def _profile(text: str) -> object:
    return profile_readers.profile_format._text(text, "x")


def _result(text: str) -> object:
    return result_readers.result_format._text(text, "x")


COSTLY = (" " * 100_000, "a" * 100_000, "1" * 100_000, "a " * 50_000, "1 " * 50_000, ";" * 100_000)
"""Long lines of what patterns repeat: with a quadratic one, each takes minutes."""

FIRST_LINES: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "results": (
        _result,
        (
            "",
            " Performance counter stats for 'x':\n",
            "1.5 cycles ",
            "<not ",
            "\tElapsed (wall clock) time ",
            "real: ",
        ),
    ),
    "profiles": (
        _profile,
        ("", "task;", "swapper 0 ", "x 1 [0] 1: 1 cycles: ", "  1.00% ", "  Function Hit\n a "),
    ),
    "output": (lambda text: parse("key-value", text, METRICS), ("", "real: ", "real")),
    "times": (lambda text: parse("time", text, METRICS), ("", "real 0m", "real ")),
    "json": (lambda text: parse("json", text, METRICS), ("", "{", '{"a": "')),
    "console": (lambda text: console_text.tail(console_text.clean(text.encode())), ("", "\x1b[", "BUG:")),
    "death": (console_text.death, ("", "Kernel panic - not syncing: ", "Oops: ")),
    "counters": (lambda text: list(counters.changes("/proc/stat", "", text)), ("", "cpu ", "intr 1 ")),
    "answers": (parse_facts, ("", "{", '{"a": "')),
    "a known key": (lambda text: key_values.of_known_key(text, {"real"}), ("", "real ")),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("reader", FIRST_LINES)
def test_time_is_linear_in_the_text(reader: str) -> None:
    """A guard against hangs, no measurement: in linear time all texts of a reader take a second or two."""
    read, beginnings = FIRST_LINES[reader]
    for beginning in beginnings:
        for costly in COSTLY:
            for text in (beginning + costly, beginning + costly + "!", (beginning + "x\n") * 3000 + costly):
                try:
                    read(text)
                except (RequestError, OutputError, AnswerError):
                    continue
