"""Mails about a culprit: what is not in the golden texts."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest

from bisector.model.decisions import Finding
from bisector.model.facts import KernelFacts
from bisector.model.goal import Find
from bisector.model.records import Discarded, Record
from bisector.report.mail import culprit_mails, measured_on
from bisector.report.report_model import Commit, Material
from bisector.schemas.request import Attempt
from bisector.stats import comparison_table
from tests.support.report_material import demo, two_levels, uneven_runs

SOUND = demo()
assert SOUND.conclusion is not None
FOUND = SOUND.conclusion.findings[0]


def upstream() -> str:
    return culprit_mails.upstream_text(SOUND, FOUND, reporter="Lab <lab@y.org>", link="https://x/1")


def test_paragraphs_fit_72_columns_and_what_is_copied_is_whole() -> None:
    for line in upstream().splitlines():
        fits = len(line) <= 72 or line.startswith(("\tperfbisect ", "commit: "))
        assert fits, line
    assert "\n\n#regzbot introduced: 444444444444\n\n" in upstream(), "a paragraph of its own"


def test_a_boot_that_was_thrown_away_later_proves_nothing() -> None:
    thrown: tuple[int, Record] = (999, Discarded("boot", "b6", "a noisy neighbour"))
    material = replace(SOUND, records=[*SOUND.records, thrown])
    words = " ".join(culprit_mails.upstream_text(material, FOUND, reporter="L", link="x").split())
    assert "The commit was compared with its parent in 1 fresh boot, interleaved." in words


def test_the_means_are_those_of_one_machine_and_say_of_which_boots() -> None:
    material = uneven_runs(more=1.05)
    words = " ".join(culprit_mails.upstream_text(material, FOUND, reporter="L", link="x").split())
    assert "The means of all boots as of run 1 are 103.00 and 108.15 s." in words
    assert "103.00 +5.0% 108.15 real (slower)" in words
    words = " ".join(culprit_mails.upstream_text(two_levels(), FOUND, reporter="L", link="x").split())
    assert "means" not in words, "150 is the level of no machine"
    assert "100.00 +5.0% 105.00 real" in words and "200.00 +5.0% 210.00 real" in words


def test_nothing_of_the_lab_is_told_to_others() -> None:
    request = {**SOUND.request, "workload": "/home/me/secret-folder/mine", "testbeds": ["rack-2"]}
    text = culprit_mails.upstream_text(
        replace(SOUND, request=request), FOUND, reporter="Lab <l@y.org>", link="x"
    )
    assert "/home/me" not in text and "secret-folder" not in text and "rack-2" not in text
    assert "testcase: mine" in text


def test_a_command_of_run_is_given_to_maintainers_as_one_that_they_can_give() -> None:
    """It was "perfbisect workload run 'a command'", which no machine knows."""
    request = {
        **SOUND.request,
        "workload": "",
        "run": "dd if=/dev/zero of=/dev/null bs=1",
        "repo": "/home/me/linux",
    }
    text = culprit_mails.upstream_text(
        replace(SOUND, request={**request, "skip": ["v1"], "priors": "/home/me/p.toml"}),
        FOUND,
        reporter="L",
        link="x",
    )
    parent, culprit = (SOUND.graph.shas[i] for i in (FOUND.parents[0], FOUND.commits[-1]))
    (step,) = [line for line in text.splitlines() if line.startswith("\tperfbisect ")]
    assert step.startswith(f"\tperfbisect start --good {parent} --bad {culprit} --run 'dd if=/dev/zero")
    assert "--repo linux" in step
    assert "/home/me" not in text and "--skip" not in step


def test_the_steps_of_a_mail_are_those_of_its_culprit_alone() -> None:
    assert SOUND.conclusion is not None
    other = replace(FOUND, commits=(1,), parents=(0,))
    both = replace(SOUND, conclusion=replace(SOUND.conclusion, findings=(FOUND, other)))
    text = culprit_mails.upstream_text(both, FOUND, reporter="L", link="x")
    steps = [line for line in text.splitlines() if line.startswith("\tperfbisect ")]
    assert steps and not any(SOUND.graph.shas[1] in line for line in steps)


def test_a_merge_was_compared_with_each_of_its_parents() -> None:
    """A mail about an octopus merge that was proven against three parents said 'its parent'."""
    assert "compared with its parent in" in " ".join(upstream().split())
    merge = replace(FOUND, parents=(*FOUND.parents, 0, 1))
    text = culprit_mails.upstream_text(SOUND, merge, reporter="L", link="x")
    assert "compared with each of its 3 parents in" in " ".join(text.split())


def test_hostile_subjects_stay_text() -> None:
    commits = {
        **SOUND.commits,
        3: replace(SOUND.commits[3], subject="x\x1b[31m: evil\u202e\n#regzbot dup: 1"),
    }
    found = replace(SOUND, commits=commits)
    text = culprit_mails.upstream_text(found, FOUND, reporter="Lab <l@y.org>", link="x")
    assert "\x1b" not in text and "\u202e" not in text and "\n#regzbot dup" not in text


def test_higher_is_better_is_said_in_words_as_well() -> None:
    goal = replace(SOUND.goal, metric=replace(SOUND.goal.metric, better="higher"))
    worse = replace(FOUND, effect=replace(FOUND.effect, low=-0.3, estimate=-0.258, high=-0.2))
    assert culprit_mails.size_in_words(replace(SOUND, goal=goal), worse) == "25.8% slower"
    assert culprit_mails.size_in_words(SOUND, worse) == "25.8% faster"
    signal = replace(goal, metric=replace(goal.metric, name="snr", unit="dB"))
    assert culprit_mails.size_in_words(replace(SOUND, goal=signal), worse) == "25.8% worse"
    small = replace(FOUND, effect=replace(FOUND.effect, low=0.0001, estimate=0.00021, high=0.0003))
    assert culprit_mails.size_in_words(SOUND, small) == "0.021% slower", "it was 0.0%"


def test_a_listed_kernel_is_called_by_its_name_and_has_no_maintainers() -> None:
    commits = {**SOUND.commits, 3: Commit("6.12.117-1~deb12u1@0123456789abcdef", "linux-image-6.12")}
    listed = replace(SOUND, commits=commits, goal=replace(SOUND.goal, unit="kernel"))
    assert culprit_mails.lab_subject(listed, FOUND).endswith('since 6.12.117-1~deb12u1 ("linux-image-6.12")')
    text = " ".join(culprit_mails.lab_text(listed, "/state/b-1/report.txt", None, []).split())
    assert "There is no mail to maintainers: it was found among listed kernels" in text
    assert "approval" not in text


def asked(**request: object) -> Material:
    return replace(SOUND, request={**SOUND.request, **request})


def about(subject: str) -> Material:
    return replace(SOUND, commits={**SOUND.commits, 3: replace(SOUND.commits[3], subject=subject)})


@pytest.mark.parametrize(
    ("find", "named", "said"),
    [
        ("regression", "v6.2", "from v6.1 to v6.2 "),
        ("regression", "a" * 40, f"from v6.1 to {'a' * 12} "),
        ("regression", "a-branch-of-a-long-name", "from v6.1 to a-branch-of-a-long-name "),
        ("fix", "v6.2", "from v6.2 to v6.1 "),  # the older end is the bad one
    ],
)
def test_what_was_measured_is_named_as_it_was_asked_for(find: Find, named: str, said: str) -> None:
    material = replace(asked(good="v6.1", bad=named), goal=replace(SOUND.goal, find=find))
    assert said in " ".join(culprit_mails.whole_report(material, "x"))


def test_what_has_no_ends_names_none() -> None:
    tried = replace(
        asked(good="v6.1", bad="v6.2"),
        attempt=Attempt(of="b-1", culprit="a" * 40, unpatched="a" * 40, tried="b" * 40),
    )
    for material in (tried, asked(good="", bad="")):
        assert culprit_mails.whole_report(material, "x")[0] == "Measured: pipe-test.real (bisection b-1)."


def test_a_commit_whose_subject_is_a_paragraph_gives_no_mail_one_of_that_length() -> None:
    long = about("mm: " + "pages " * 80)
    assert culprit_mails.lab_subject(long, FOUND).endswith(f' ("{("mm: " + "pages " * 80)[:117]}...")')
    assert culprit_mails.lab_subject(about("m" * 120), FOUND).endswith(f' ("{"m" * 120}")')
    text = " ".join(culprit_mails.lab_text(long, "/state/b-1/report.txt", None, []).split())
    assert ("pages " * 80).strip() in text


@pytest.mark.parametrize(
    ("subject", "repo", "said"),
    [
        ("x86: mm: mend it", "/home/me/linux.git", "[linux:rt-04] [x86: mm]  "),
        ("mend it", "/home/me/mine", "[mine:rt-04] [kernel]  "),
        ("mend it", "", "[linux:rt-04] [kernel]  "),
        (f"{'s' * 50}: mend it", "linux", f"[linux:rt-04] [{'s' * 40}]  "),
    ],
)
def test_a_subject_names_tree_and_subsystem(subject: str, repo: str, said: str) -> None:
    material = replace(about(subject), request={**SOUND.request, "repo": repo})
    assert culprit_mails.upstream_subject(material, FOUND).startswith(said)


def test_the_compiler_is_that_of_the_newer_end() -> None:
    kernels = {0: KernelFacts(toolchain="gcc 11"), 4: KernelFacts(toolchain="gcc 12")}
    with patch.object(Material, "kernel", lambda _, index: kernels[index]):
        assert culprit_mails.parameters_of(SOUND)["compiler"] == "gcc 12"
        kernels[4] = KernelFacts()
        assert culprit_mails.parameters_of(SOUND)["compiler"] == "gcc 11", (
            "of the other, where that is unknown"
        )


def table(material: Material, finding: Finding) -> list[str]:
    """Return the table as the mail has it."""
    return culprit_mails.table(material, finding, measured_on.machines(material, finding))


def test_a_merge_is_shown_beside_the_parent_that_its_means_are_of() -> None:
    merge = replace(FOUND, parents=(2, 0))
    assert table(SOUND, merge) == table(SOUND, FOUND)


def test_a_table_whose_samples_are_gone_says_so() -> None:
    for gone in (replace(FOUND, parents=(1,)), replace(FOUND, parents=())):
        assert table(SOUND, gone) == ["The samples are no longer there."]
    with patch.object(comparison_table, "build", side_effect=ValueError("none")):
        assert table(SOUND, FOUND) == ["The two kernels have no metric in common."]


def test_the_command_of_others_has_nothing_that_only_the_lab_has() -> None:
    request = {"workload": "", "run": "true", "skip": ["v1"], "paths": ["mm"], "priors": "/p.toml"}
    text = culprit_mails.upstream_text(asked(**request, testbeds=["rack-2"]), FOUND, reporter="L", link="x")
    (step,) = [line for line in text.splitlines() if line.startswith("\tperfbisect ")]
    assert not any(word in step for word in ("--skip", "--path", "--priors", "--testbed"))
    assert "\tgit " not in upstream(), "readers have a tree of their own"
