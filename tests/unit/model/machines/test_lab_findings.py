"""What checks of machines found, summed up."""

from __future__ import annotations

from bisector.model.machines.lab_findings import LabFinding, MachineFindings, worst

OK, DOUBT = LabFinding("a", "ok", "x"), LabFinding("b", "doubtful", "x")
WRONG, UNTRIED = LabFinding("c", "wrong", "x"), LabFinding("d", "not tried", "x")


def test_only_what_is_wrong_makes_a_machine_unusable() -> None:
    assert MachineFindings("box", (OK, DOUBT, UNTRIED)).ok
    machine = MachineFindings("box", (OK, WRONG, LabFinding("e", "wrong", "later")))
    assert not machine.ok and machine.first_wrong() == WRONG


def test_the_worst_of_several() -> None:
    assert worst([OK, UNTRIED]) == "ok"
    assert worst([OK, DOUBT, UNTRIED]) == "doubtful"
    assert worst([DOUBT, WRONG]) == "wrong"
    assert worst([UNTRIED]) == worst([]) == "not tried"
