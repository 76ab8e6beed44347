"""What is listed of the outbox, and drafts where nobody is to be written to; else tests/integration/mail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.outbox.memory_outbox import MemoryOutbox
from bisector.app.mail import outbox_view
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.model.decisions import Ending
from bisector.model.outbox import LAB, Key, Message, State
from bisector.schemas.settings import Settings
from tests.support.report_material import demo

FOUND = demo()
assert FOUND.conclusion is not None
(CULPRIT,) = FOUND.conclusion.findings
SET = replace(CULPRIT, commits=(1, 2), parents=(0,))


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ((SET,), "'#regzbot introduced: 111111111111..333333333333'"),
        ((), "'perfbisect report b-1' says"),
        ((replace(SET, certified=False),), "'perfbisect report b-1' says"),
        ((replace(SET, opposite=True),), "'perfbisect report b-1' says"),
    ],
)
def test_of_a_set_regzbot_is_told_the_range_by_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, findings: tuple[object, ...], said: str
) -> None:
    ended = replace(FOUND.conclusion, ending=Ending.CULPRIT_SET, findings=findings)  # type: ignore[type-var]
    monkeypatch.setattr(outbox_view, "load_material", lambda *_: replace(FOUND, conclusion=ended))
    with pytest.raises(RequestError, match="no certified culprit to write about") as error:
        outbox_view.mail_draft(Wiring(Settings(state_dir=tmp_path)), None)
    assert said in error.value.cure and ("regzbot" in error.value.cure) is ("regzbot" in said)


def test_what_waits_for_a_person_is_listed_however_old_it_is() -> None:
    outbox = MemoryOutbox(lambda: 1.0)
    states: tuple[State, ...] = ("waiting", "sent", "refused", "approved", "unsure", "sent", "sent")
    for number, state in enumerate(states):
        key = Key(f"culprit {number}", "w", "regression", LAB)
        outbox.put(key, "mail", Message(("lab@example.org",), "subject", "text"), state, by="ann")

    def listed(limit: int | None) -> list[int]:
        return [entry.number for entry in outbox_view.latest(outbox, limit)]

    assert listed(2) == [7, 6, 5, 3, 1]
    assert listed(4) == [7, 6, 5, 4, 3, 1]
    assert listed(None) == listed(9) == [7, 6, 5, 4, 3, 2, 1]
