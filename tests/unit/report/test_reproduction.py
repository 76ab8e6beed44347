"""The commands that reproduce a result."""

from __future__ import annotations

import dataclasses

from bisector.model.decisions import Ending, Finding, Interval
from bisector.report import reproduction
from tests.support.report_material import demo


def test_the_culprit_and_its_parent_are_built_and_run() -> None:
    material = demo()
    assert material.conclusion is not None
    text = "\n".join(reproduction.lines(material, material.conclusion))
    parent, culprit = material.graph.shas[2], material.graph.shas[3]
    assert [line.split()[3] for line in text.splitlines() if "kernel build" in line] == [parent, culprit]
    assert f"git -C /home/me/linux show {culprit}" in text
    assert f".config of {culprit[:12]}: /cache/kernels/3/config" in text


def test_a_command_is_run_again_from_the_folder_that_was_made_of_it() -> None:
    material = demo()
    assert material.conclusion is not None
    request = {**material.request, "workload": "", "run": "dd if=/dev/zero"}
    text = "\n".join(reproduction.lines(dataclasses.replace(material, request=request), material.conclusion))
    assert f"workload run {material.files['raw output']}/workload/build --rev" in text
    assert "--run 'dd if=/dev/zero'" in text


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
