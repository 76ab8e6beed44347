"""The checklist of a lab's machines."""

from __future__ import annotations

from bisector.model.machines.lab_findings import LabFinding, MachineFindings
from bisector.report import lab_checklist

MACHINE = MachineFindings(
    "testbed box",
    (
        LabFinding("ssh", "ok", "answers", seconds=0.35),
        LabFinding("clock", "doubtful", "7 s behind", "keep both with NTP"),
        LabFinding("power cycle", "wrong", "it did not answer", "look at its console", "one\ntwo\n"),
        LabFinding("noise", "not tried", "first mend what is wrong"),
    ),
)


def test_each_check_has_a_mark_its_evidence_and_its_cure() -> None:
    assert lab_checklist.render([MACHINE], 0.0, "1.2") == (
        "Machines of a lab, checked by perfbisect 1.2, 1970-01-01 00:00 UTC\n"
        "==================================================================\n"
        "\n"
        "[x] ok   [?] works, and may hurt later   [!] wrong   [ ] not tried\n"
        "\n"
        "testbed box\n"
        "-----------\n"
        "[x] ssh: answers (0.3 s)\n"
        "[?] clock: 7 s behind\n"
        "    cure: keep both with NTP\n"
        "[!] power cycle: it did not answer\n"
        "    cure: look at its console\n"
        "    | one\n"
        "    | two\n"
        "[ ] noise: first mend what is wrong\n"
        "\n"
        "Not tried: noise.\n"
    )


def test_a_machine_of_which_all_was_tried() -> None:
    text = lab_checklist.render(
        [MachineFindings("builder b", (LabFinding("ssh", "ok", "answers"),))], 0.0, "1"
    )
    assert text.endswith("\nEverything was tried.\n")
