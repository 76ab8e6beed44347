"""Mails, word for word: a change of their text is a change that somebody looked at."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from bisector.model.alerts import Alert
from bisector.model.decisions import Interval
from bisector.model.outbox import MAINTAINERS, Key, Message, OutboxEntry, State
from bisector.report.mail import culprit_mails, effects_table, fix_mails, weekly_summary
from bisector.report.report_model import Material
from tests.support.expected import check
from tests.support.report_material import demo

SOUND = demo()
assert SOUND.conclusion is not None
FOUND = SOUND.conclusion.findings[0]
ALERT = Alert(
    "9f86d081aa",
    "nightly",
    "pipe-test",
    "real",
    "rack-2",
    "/linux",
    "a" * 40,
    "b" * 40,
    "regression",
    Interval(0.035, 0.042, 0.05),
    finding="bisecting",
    created=1795000000.0,
)


def test_the_report_to_the_lab() -> None:
    link = "https://perf.example.org/bisections/b-1"
    text = culprit_mails.lab_text(SOUND, link, "draft", ["a suspect testbed"])
    others: list[tuple[State, list[str]]] = [
        ("waiting", []),
        ("waiting", ["a later commit names it in 'Fixes:'"]),
        ("approved", []),
    ]
    for state, reasons in others:
        ready = culprit_mails.lab_text(SOUND, "/state/b-1/report.txt", state, reasons)
        text += f"\n[...]{ready.partition('The whole report')[2]}"
    check("mail-lab.txt", f"Subject: {culprit_mails.lab_subject(SOUND, FOUND)}\n\n{text}")


def test_the_draft_for_maintainers() -> None:
    subject = culprit_mails.upstream_subject(SOUND, FOUND)
    text = culprit_mails.upstream_text(
        SOUND,
        FOUND,
        reporter="Kernel lab <lab@example.org>",
        link="https://perf.example.org/bisections/b-1",
        notes=["Only author and sign-offs get this mail: the tree has no scripts/get_maintainer.pl."],
    )
    check("mail-upstream.txt", f"Subject: {subject}\n\n{text}")


def test_the_draft_names_where_its_tree_is_fetched_from() -> None:
    url = "https://git.example.org/torvalds/linux.git"
    text = culprit_mails.upstream_text(SOUND, FOUND, reporter="Lab", link="x", branch="master", url=url)
    check("mail-tree.txt", text.partition("commit: ")[2].partition("test machine")[0])


def test_what_else_a_culprit_changes() -> None:
    faster = replace(FOUND, effect=Interval(-0.31, -0.3, -0.29))
    hostile = {**SOUND.request, "workload": "\x1b[2J" + "w" * 300, "recipe": "a\n#regzbot dup: 1"}
    others = [
        (replace(SOUND, request={**SOUND.request, "workload": "/home/ann/hackbench"}), FOUND),
        (SOUND, faster),
        (replace(SOUND, request=hostile), FOUND),
    ]
    draft = culprit_mails.upstream_text(
        SOUND, FOUND, reporter="Lab", link="x", others=effects_table.render(others)
    )
    to_lab = culprit_mails.lab_text(
        SOUND, "x", "waiting", [], effects_table.render(others[:1] * 12, lab=True)
    )
    texts = [
        draft.partition("| Closes: x\n")[2].partition("Details")[0],
        to_lab[to_lab.index("The commit also") :],
    ]
    assert effects_table.render([]) == []
    assert effects_table.render(others[:1] * 12)[-2:] == ["and 2 more", ""]
    check("mail-effects.txt", "[...]\n".join(texts))


def test_the_follow_up_of_a_fix() -> None:
    texts = [
        fix_mails.fixed_text(
            SOUND,
            FOUND,
            fix="f" * 40,
            fix_subject="x86: Mend RT",
            is_revert=is_revert,
            back_since=back_since,
            back_subject="Merge branch 'x86/urgent'" if back_since else "",
        )
        for is_revert, back_since in ((False, ""), (True, ""), (False, "e" * 40), (True, "f" * 40))
    ]
    check("mail-fixed.txt", "\n[...]\n\n".join(texts))


def test_the_summary_of_a_week() -> None:
    lost = OutboxEntry(
        7,
        Key("c", "w", "regression", "lab"),
        "mail",
        Message(("a@x.org",), "slower", ""),
        "unsure",
        "",
        0,
        0,
        "w",
        note="the connection was lost after the text was sent",
    )
    draft = replace(
        lost,
        number=12,
        key=Key("c", "w", "regression", MAINTAINERS),
        state="waiting",
        changed=1795000000.0,
        note="a later commit names it in 'Fixes:'",
    )
    week = weekly_summary.Week(
        "2026-W47",
        alerts=[
            weekly_summary.alert_line(ALERT, "https://perf.example.org/alerts/9f86d081aa"),
            weekly_summary.alert_line(replace(ALERT, assignee="ann", unit="ms"), ""),
            weekly_summary.alert_line(
                replace(ALERT, finding="culprit", culprits=("4" * 40,), subject="x86: Allow to enable RT"), ""
            ),
        ],
        culprits=[weekly_summary.culprit_line(SOUND, FOUND, "https://perf.example.org/bisections/b-1")],
        testbeds=["rack-3 (suspect): the reference run moved by 3.1%"],
        hours={"nightly": 61.25, "ann@desk": 3.0},
        waiting=[draft, replace(draft, number=13, note="")],
        undelivered=[lost],
    )
    check("mail-weekly.txt", f"Subject: {weekly_summary.subject(week)}\n\n{weekly_summary.render(week)}")


def test_as_many_other_effects_as_are_shown_leave_none_out() -> None:
    limit = effects_table.MAX_EFFECTS
    assert not any("more" in line for line in effects_table.render([(SOUND, FOUND)] * limit))
    assert "and 1 more" in effects_table.render([(SOUND, FOUND)] * (limit + 1))


def test_the_machine_of_another_effect_is_the_one_that_ran_the_culprit() -> None:
    with patch.object(Material, "facts", lambda _, commit, *_testbed: {"cpu.model": f"CPU of {commit}"}):
        text = "\n".join(effects_table.render([(SOUND, FOUND)]))
    assert f"CPU of {FOUND.commits[-1]} " in text
