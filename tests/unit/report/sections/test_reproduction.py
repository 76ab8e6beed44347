"""The commands that reproduce a result."""

from __future__ import annotations

import dataclasses

import pytest

from bisector.model.decisions import Ending, Finding, Interval
from bisector.report import statements
from bisector.report.report_model import Commit
from bisector.report.sections import reproduction
from bisector.simulation.histories import linear
from tests.support.report_material import demo


def test_the_culprit_and_its_parent_are_built_and_run() -> None:
    material = demo()
    assert material.conclusion is not None
    text = "\n".join(reproduction.lines(material, material.conclusion))
    parent, culprit = material.graph.shas[2], material.graph.shas[3]
    assert [line.split()[3] for line in text.splitlines() if "kernel build" in line] == [parent, culprit]
    assert f"git -C /home/me/linux show {culprit}" in text
    assert f".config of {culprit[:12]}: /cache/kernels/3/config" in text


@pytest.mark.parametrize(("last", "shown"), [(3, 3), (41, 20)])
def test_all_of_a_set_are_shown_that_the_report_names(last: int, shown: int) -> None:
    """It was 'git show' of the last one alone, which is as likely innocent as any other."""
    material = dataclasses.replace(demo(), graph=linear(last + 1))
    assert material.conclusion is not None
    (finding,) = material.conclusion.findings
    a_set = dataclasses.replace(finding, commits=tuple(range(1, last + 1)), parents=(0,))
    ended = dataclasses.replace(material.conclusion, ending=Ending.CULPRIT_SET, findings=(a_set,))
    single, _ = reproduction.commands(material, ended)
    assert single[-1].split()[4:] == list(material.graph.shas[1 : shown + 1])
    assert [line.split()[3] for line in single if "kernel build" in line] == [
        material.graph.shas[0],
        material.graph.shas[last],
    ]


def test_a_merge_is_built_with_each_of_its_parents() -> None:
    """It was proven against each, and told with the first alone."""
    material = demo()
    assert material.conclusion is not None
    (finding,) = material.conclusion.findings
    merge = dataclasses.replace(finding, parents=(1, 2))
    single, _ = reproduction.commands(material, dataclasses.replace(material.conclusion, findings=(merge,)))
    built = [line.split()[3] for line in single if "kernel build" in line]
    assert built == list(material.graph.shas[1:4])
    rows = statements.finding_rows(material, merge)
    assert [rows["parent 1"], rows["parent 2"]] == [material.label(1), material.label(2)]
    assert "parent" not in rows


def test_a_command_is_run_again_from_the_folder_that_was_made_of_it() -> None:
    material = demo()
    assert material.conclusion is not None
    request = {**material.request, "workload": "", "run": "dd if=/dev/zero"}
    text = "\n".join(reproduction.lines(dataclasses.replace(material, request=request), material.conclusion))
    assert f"workload run {material.files['raw output']}/workload/build --rev" in text
    assert "--run 'dd if=/dev/zero'" in text


def test_of_an_end_alone_nobody_is_told_what_it_changes() -> None:
    for ending, shown in ((Ending.NOT_REPRODUCED, False), (Ending.CULPRIT, True)):
        material = demo()
        assert material.conclusion is not None
        end = dataclasses.replace(material.conclusion, ending=ending)
        single, _ = reproduction.commands(material, end)
        assert any(line.startswith("git -C /home/me/linux show ") for line in single) is shown


def test_without_a_culprit_the_two_ends_are() -> None:
    material = demo()
    assert material.conclusion is not None
    ended = dataclasses.replace(
        material.conclusion,
        ending=Ending.INCONCLUSIVE,
        findings=(Finding((1, 2), Interval(0.1, 0.2, 0.3), 0.5),),
    )
    text = "\n".join(reproduction.lines(material, ended))
    ends = [material.graph.shas[i] for i in (0, 4)]
    assert [line.split()[3] for line in text.splitlines() if "kernel build" in line] == ends


@pytest.mark.parametrize(
    ("name", "package", "tag"),
    [
        ("6.1.172-1", "linux-image-6.1.0-48-amd64", "v6.1.172"),
        ("6.12.9-1~bpo12+1", "linux-image-6.12.9+bpo-amd64", "v6.12.9"),
        ("6.10-1", "linux-image-6.10-amd64", "v6.10"),
        ("6.9.1-200.fc40", "kernel-core", "v6.9.1"),
        ("7.1~rc5-1~exp1", "linux-image-7.1-rc5", ""),
        ("6.10.0-0.rc3.20240612git2.30.fc41", "kernel-core", ""),
        ("6.10-rc3-1", "linux-image-6.10-rc3", ""),
        ("6.8.0-31.31", "linux-image-unsigned-6.8.0-31-generic", ""),
        ("5.14.0-427.el9", "kernel-core", ""),
        ("6.10-with-fix", "6.10-with-fix", ""),
        ("build_6.10-my-fix", "build_6.10 my fix", ""),
    ],
)
def test_only_a_packages_version_that_tells_its_release_names_a_tag(
    name: str, package: str, tag: str
) -> None:
    material = demo()
    assert material.conclusion is not None
    shas = list(material.graph.shas)
    shas[2:4] = "3.0-1@0123456789abcdef", f"{name}@0123456789abcdef"
    listed = dataclasses.replace(
        material,
        graph=dataclasses.replace(material.graph, shas=tuple(shas)),
        goal=dataclasses.replace(material.goal, unit="kernel"),
        commits={2: Commit(shas[2], "linux-image-3.0"), 3: Commit(shas[3], package)},
    )
    text = "\n".join(reproduction.lines(listed, material.conclusion))
    assert (f"are of Linux v3.0 and {tag}. In" in text) == bool(tag)
    assert ("bisect the commits from which these were built" in text) == (not tag)
