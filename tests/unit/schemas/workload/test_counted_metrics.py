"""Metrics that are counted: any workload has them when it is asked for them, under the clock that can."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.agent.payload import metric_specs
from bisector.errors import RequestError
from bisector.schemas.counted_functions import MISSES
from bisector.schemas.workload.counted_metrics import (
    COUNTERS,
    counted_function,
    counted_metric,
    is_modelled,
    of_function,
)
from bisector.schemas.workload.manifest import WorkloadManifest
from bisector.schemas.workload.metric import MetricManifest
from bisector.schemas.workload.workload import Workload, load_workload


@pytest.mark.parametrize("name", [*COUNTERS, "instructions.schedule", "instructions.__x64_sys_read"])
def test_any_workload_can_be_decided_by_a_counter_in_emulated_guests(name: str) -> None:
    workload = load_workload("pipe-test").with_counter(name)
    metric = workload.metric(name, "instructions")
    assert (metric.name, metric.better, metric.threshold.value) == (name, "lower", 0.01)
    with pytest.raises(RequestError, match="cannot decide under the clock 'wall'") as refused:
        workload.metric(name, "wall")
    assert "only emulated guests count it" in refused.value.cure
    assert workload.metric().name == "real"  # what decides otherwise stays
    assert name not in [spec.name for spec in metric_specs(workload.manifest)]  # it is not printed


def test_what_a_workload_prints_itself_is_not_counted() -> None:
    own = load_workload("pipe-test")
    printed = counted_metric("loads").model_copy(update={"unit": "tons"})
    manifest = own.manifest.model_copy(update={"metrics": (*own.manifest.metrics, printed)})
    workload = replace(own, manifest=manifest)
    assert workload.with_counter("loads").manifest == workload.manifest
    assert workload.with_counter("loads").needed_counters() == ()
    assert workload.metric("loads").unit == "tons"
    watched = workload.with_monitors(["counters=zen2"])
    assert [metric.name for metric in watched.manifest.all_metrics()].count("loads") == 1


POINT = {"workload": ("W1",), "limit": ("unconstrained",)}


@pytest.mark.parametrize("points", [POINT, {}])
def test_an_optional_number_of_perf_is_counted_where_no_perf_is(points: dict[str, tuple[str, ...]]) -> None:
    own = load_workload("cfs-bandwidth/small").with_parameters(points)
    asked = own.with_counter("instructions")
    assert asked.manifest.counted() == asked.needed_counters() == ("instructions",)
    counted = asked.metric("instructions", "instructions")
    assert counted == counted_metric("instructions").metric()
    assert own.with_counter("real").manifest.counted() == own.manifest.counted() == ()
    assert "instructions" not in asked.unable("instructions")
    others = (one for one in asked.manifest.expanded_metrics() if one.name != "instructions")
    assert all(one.clocks == ("wall", "instructions") for one in others)


def test_an_optional_number_of_perf_decides_on_a_machine() -> None:
    own = load_workload("cfs-bandwidth/small").with_parameters(POINT)
    asked = own.with_counter("instructions")
    assert asked.metric("instructions", "wall") == own.metric("instructions", "wall")
    assert asked.metric("instructions", "wall").threshold.value == 0.005
    assert "instructions" not in asked.unable("wall")
    specs = [spec for spec in metric_specs(asked.manifest) if spec.name == "instructions"]
    assert [spec.optional for spec in specs] == [True]


def test_only_the_counter_that_decides_is_needed() -> None:
    own = load_workload("db-aio")
    assert own.manifest.counted()
    assert own.needed_counters() == ()
    assert own.with_counter(None).with_monitors(["counters"]).needed_counters() == ()
    assert own.with_counter("LL-misses").needed_counters() == ("LL-misses",)  # counted beside otherwise
    assert own.with_counter("loads").needed_counters() == ("loads",)


def ratio(text: str, **more: object) -> dict[str, object]:
    given = {"name": "ipc", "unit": "i/c", "better": "higher", "threshold": "1%", "ratio": text}
    return {**given, "clocks": ("instructions",), **more}


def test_a_ratio_of_counted_numbers_has_them_counted() -> None:
    own = load_workload("pipe-test")
    said = dict(own.manifest)

    def workload(one: dict[str, object], **more: object) -> Workload:
        metrics = (*own.manifest.metrics, MetricManifest.model_validate(one))
        return replace(own, manifest=WorkloadManifest.model_validate({**said, "metrics": metrics, **more}))

    ipc = workload(ratio("instructions / modelled-cycles"))
    assert ipc.manifest.counted() == ("instructions", "modelled-cycles")
    assert ipc.needed_counters() == ()  # it does not decide
    assert ipc.with_counter("ipc").needed_counters() == ("instructions", "modelled-cycles")
    assert workload(ratio("real / loads")).with_counter("ipc").needed_counters() == ("loads",)
    (spec,) = [spec for spec in metric_specs(ipc.manifest) if spec.name == "ipc"]
    assert (spec.ratio, spec.optional) == (
        ("instructions", "modelled-cycles"),
        True,
    )  # not in what is printed
    with pytest.raises(RequestError, match="cannot decide under the clock 'wall'") as refused:
        ipc.metric("ipc", "wall")
    assert "only emulated guests count it" in refused.value.cure
    with pytest.raises(ValueError, match=r"needs 'clocks: \[instructions\]'.*count 'loads'"):
        workload(ratio("real / loads", clocks=("wall", "instructions")))
    with pytest.raises(ValueError, match="no metric 'load' is printed"):
        workload(ratio("real / load"))
    with pytest.raises(ValueError, match="'loads' is counted in a whole run: parameters need one value each"):
        workload(ratio("real / loads"), parameters={"size": ["1", "2"]}, run=("pipe-test", "{size}"))


def test_a_ratio_that_decides_needs_what_it_is_made_of() -> None:
    own = load_workload("pipe-test")
    metrics = [one.model_copy(update={"decides": False}) for one in own.manifest.metrics]
    metrics[0] = metrics[0].model_copy(update={"decides": True, "clocks": ("wall",)})
    deciding = MetricManifest.model_validate(ratio("loads / LL-misses", decides=True))
    manifest = WorkloadManifest.model_validate({**dict(own.manifest), "metrics": (*metrics, deciding)})
    assert replace(own, manifest=manifest).needed_counters() == ("loads", "LL-misses")


def test_an_unknown_metric_is_refused_with_what_can_be_counted() -> None:
    with pytest.raises(RequestError, match="did you mean 'LL-misses'") as refused:
        load_workload("pipe-test").with_counter("LL-mises").metric("LL-mises")
    assert "modelled-cycles" in refused.value.details


def test_the_instructions_of_a_function_have_a_name_that_a_function_can_have() -> None:
    assert of_function("rt_mutex_setprio") == "instructions.rt_mutex_setprio"
    assert counted_function("instructions.rt_mutex_setprio") == "rt_mutex_setprio"
    for wrong in ("", "[user programs]", "release [brd]", "pipe-test:main", "f" * 88, "9p"):
        assert of_function(wrong) is None, wrong
    assert counted_function("instructions") is counted_function("loads") is None
    with pytest.raises(RequestError, match=r"has no metric 'instructions\.9p'") as refused:
        load_workload("pipe-test").with_counter("instructions.9p").metric("instructions.9p")
    assert "instructions.FUNCTION, of one function of the kernel" in refused.value.details
    longest = of_function("f" * 87) or pytest.fail("a name of 100 characters is none")
    assert counted_metric(longest).name == longest


def test_a_manifest_names_counters_beside_its_metrics() -> None:
    said = dict(load_workload("pipe-test").manifest)
    found = WorkloadManifest.model_validate(said | {"counters": ["LL-misses"]})
    assert found.all_metrics()[-1].name == "LL-misses"
    for wrong, why in (
        (["LL-mises"], "nothing counts 'LL-mises'; did you mean 'LL-misses'"),
        (["loads", "loads"], "there twice"),
    ):
        with pytest.raises(ValueError, match=why):
            WorkloadManifest.model_validate(said | {"counters": wrong})
    metric = counted_metric("loads")
    with pytest.raises(ValueError, match="'loads' is a metric that is printed as well"):
        metrics = (*found.metrics, metric)
        WorkloadManifest.model_validate(said | {"counters": ["loads"], "metrics": metrics})


def test_the_monitor_counts_instructions_and_with_a_processor_all() -> None:
    own = Workload(Path(), load_workload("pipe-test").manifest)
    assert own.with_monitors(["counters"]).manifest.counted() == (
        *("instructions", "user-instructions", "kernel-instructions"),
        *("page-faults", "interrupts", "context-switches"),  # which cost nothing where functions are counted
    )
    assert set(own.with_monitors(["counters=zen2"]).manifest.counted()) == set(COUNTERS)


@pytest.mark.parametrize(
    ("metric", "monitors", "processor"),
    [
        (None, (), None),
        ("real", ("counters",), None),
        ("kernel-instructions", (), None),
        ("loads", (), None),
        ("branch-misses", (), ""),
        ("LL-misses", (), ""),
        ("modelled-cycles", ("counters=zen2",), "zen2"),
        (None, ("counters=nehalem",), "nehalem"),
    ],
)
def test_a_processor_is_modelled_where_a_number_needs_it(
    metric: str | None, monitors: tuple[str, ...], processor: str | None
) -> None:
    workload = load_workload("pipe-test").with_monitors(monitors).with_counter(metric)
    assert workload.modelled_processor() == processor


def test_whatever_a_model_counts_is_told_by_function() -> None:
    assert MISSES.keys() == {name for name in COUNTERS if is_modelled(name)}
