"""How a machine is prepared: from the manifest and the lab to the agent's file, and what is said of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from pydantic import ValidationError

from bisector.adapters.agent.payload import (
    HOST,
    agent_command,
    agent_files,
    boot_parameters,
    settings_text,
    with_lab_settings,
)
from bisector.errors import RequestError
from bisector.linux.settings_report import settings, unset
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.workload.requirements import Environment
from bisector.testing.fake_testbed import job

CPU = "/sys/devices/system/cpu"


def lines(**keys: object) -> list[str]:
    return settings_text(Environment.model_validate(keys).settings()).splitlines()


def test_settings_become_lines_of_the_agents_file() -> None:
    assert lines() == ["autogroup /proc/sys/kernel/sched_autogroup_enabled 0"]
    found = lines(
        governor="performance", turbo=False, cstates="off", irqs="0,2-3", thp="never", autogroup="on"
    )
    assert found == [
        "autogroup /proc/sys/kernel/sched_autogroup_enabled 1",
        f"cstates {CPU}/cpu*/cpuidle/state[1-9]*/disable 1",
        f"governor {CPU}/cpu*/cpufreq/scaling_governor performance",
        "irqs !perfbisect-host 0,2-3",
        "irqs /proc/irq/*/smp_affinity_list 0,2-3",
        "thp /sys/kernel/mm/transparent_hugepage/enabled never",
        f"turbo {CPU}/cpufreq/boost 0",
        f"no_turbo {CPU}/intel_pstate/no_turbo 1",  # asked the other way round
    ]


@pytest.mark.parametrize("wrong", [{"irqs": "a"}, {"swap": "on"}, {"thp": "sometimes"}, {"governor": "a b"}])
def test_a_wrong_value_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Environment.model_validate(wrong)


def test_the_script_travels_only_where_a_setting_is_no_file(tmp_path: Path) -> None:
    plain = job(tmp_path)
    assert HOST not in agent_files(plain)
    quiet = dataclasses.replace(plain, environment={"swap": "off"})
    assert b"swapoff" in agent_files(quiet)[HOST]
    assert agent_files(quiet)["perfbisect-settings"] == f"swap !{HOST} off\n".encode()


def test_the_kernels_own_randomness_is_a_word_for_its_boot() -> None:
    assert boot_parameters(Environment.model_validate({"kaslr": False}).settings()) == " nokaslr"
    assert boot_parameters(Environment.model_validate({"isolated": "2-3"}).settings()) == " isolcpus=2-3"
    assert boot_parameters(Environment.model_validate({"aslr": False}).settings()) == " norandmaps"
    assert boot_parameters(Environment.model_validate({"aslr": True}).settings()) == ""
    assert boot_parameters({}) == ""


def test_settings_are_undone_only_on_machines_that_live_on(tmp_path: Path) -> None:
    assert "--undo" not in agent_command(job(tmp_path))
    assert agent_command(job(tmp_path), undo=True)[2:4] == ["--undo", "yes"]


def inventory(environment: object) -> dict[str, object]:
    variables = {"perfbisect_kind": "libvirt", "perfbisect_environment": environment}
    return {"testbeds": {"hosts": ["guest"]}, "_meta": {"hostvars": {"guest": variables}}}


def test_the_lab_prepares_a_testbed_and_a_workload_is_stronger(tmp_path: Path) -> None:
    lab = lab_from_inventory(inventory({"governor": "performance", "aslr": "on"}), Path("lab.yml"))
    own = dataclasses.replace(job(tmp_path), environment={"aslr": "0", "nice": "5"})
    found = with_lab_settings(own, lab.testbeds[0].variables.environment.settings())
    assert found.environment == {"governor": "performance", "aslr": "0", "nice": "5"}


def test_a_misspelt_setting_of_the_lab_is_told() -> None:
    with pytest.raises(RequestError) as caught:
        lab_from_inventory(inventory({"governer": "performance"}), Path("lab.yml"))
    assert "perfbisect_environment.governer" in caught.value.message


def test_what_was_set_and_what_could_not_be_is_said_in_words() -> None:
    facts = {
        "setting.governor.before": "powersave",
        "setting.governor.after": "performance",
        "setting.thp.before": "never",
        "setting.thp.after": "never",
        "setting.turbo.before": "absent",
        "setting.turbo.after": "absent",
        "setting.sysctl.vm.swappiness.before": "60",
        "setting.sysctl.vm.swappiness.after": "60",
        "setting.sysctl.vm.swappiness.error": "Permission denied",
        "setting.kaslr.error": "only a boot can change it",
        "cmdline": "quiet",
    }
    assert settings(facts) == {
        "governor": "powersave -> performance",
        "kaslr": "not set: only a boot can change it",
        "sysctl.vm.swappiness": "not set: Permission denied; it is 60",
        "thp": "never",
        "turbo": "not set: there is no such setting here",
    }
    assert list(unset(facts)) == ["kaslr", "sysctl.vm.swappiness", "turbo"]


@pytest.mark.parametrize(
    ("boost", "no_turbo", "said"),
    [
        ("absent absent", "0 1", "1 -> 0"),  # intel_pstate
        ("1 0", "absent absent", "1 -> 0"),  # acpi-cpufreq, amd-pstate
        ("absent absent", "absent absent", "not set: there is no such setting here"),
        ("absent absent", "1 1 Operation not permitted", "not set: Operation not permitted; it is 0"),
    ],
)
def test_turbo_is_told_the_same_way_whatever_the_driver_calls_it(
    boost: str, no_turbo: str, said: str
) -> None:
    """Intel's file is 1 where turbo is off: 'turbo: 0 -> 1' was said of a machine that had it no more."""
    facts = {}
    for name, texts in (("turbo", boost), ("no_turbo", no_turbo)):
        for part, text in zip(("before", "after", "error"), texts.split(" ", 2), strict=False):
            facts[f"setting.{name}.{part}"] = text
    assert settings(facts) == {"turbo": said}


def test_cpus_that_are_switched_on_get_the_other_settings_too() -> None:
    asked = {"cstates": "off", "governor": "performance", "thp": "never"}
    assert [line.split()[0] for line in lines(**asked, smt="on")] == [
        "smt", "autogroup", "cstates", "governor", "thp",
    ]  # fmt: skip
    # Those that are switched off go last: undone the other way round, they are there when theirs comes back.
    assert lines(**asked, smt="off")[-2].startswith("smt ")
