"""What a mail to maintainers begins as: sent by itself, waiting for a person, or a draft."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bisector.app.mail.culprit_offers import Prepared, state_of
from bisector.model.outbox import Message, State
from bisector.model.series import owner_of

PUBLIC, OTHER = owner_of("mainline"), owner_of("nightly")


@pytest.mark.parametrize(
    ("against", "doubts", "owner", "state"),
    [
        ((), (), PUBLIC, "approved"),
        ((), ("a later commit names it",), PUBLIC, "waiting"),
        ((), (), OTHER, "waiting"),
        ((), (), "mainline", "waiting"),  # a person of that name
        (("the testbed is suspect",), (), PUBLIC, "draft"),
        (("the testbed is suspect",), ("a later commit names it",), OTHER, "draft"),
    ],
)
def test_nothing_goes_out_by_itself_that_a_person_should_look_at(
    against: tuple[str, ...], doubts: tuple[str, ...], owner: str, state: State
) -> None:
    stored, mail = SimpleNamespace(owner=owner), SimpleNamespace(public=("mainline",))
    wiring: Any = SimpleNamespace(
        settings=SimpleNamespace(mail=mail), store=SimpleNamespace(load=lambda bisection: stored)
    )
    material: Any = SimpleNamespace(id="one")
    prepared = Prepared(Message(("a@x.org",), "slower", "text"), against, doubts)
    assert state_of(wiring, material, prepared) == state
    assert prepared.reasons == (*against, *doubts)
