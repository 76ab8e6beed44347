"""Which of git's reasons a user can mend, in the words of git 2.39."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.git.git_errors import cure_of, refusal


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("fatal: detected dubious ownership in repository at '/k'", "belongs to another user"),
        ("fatal: could not fetch 49bb76aa from promisor remote", "is a partial clone that lacks"),
        ("warning: lazy fetching disabled; some objects may not be available", "is a partial clone"),
        ("fatal: /etc/passwd: '/etc/passwd' is outside repository at '/k'", "is not one of the repository"),
        ("fatal: Needed a single revision", None),
    ],
)
def test_a_reason_that_the_user_can_mend_is_a_wrong_request(reason: str, words: str | None) -> None:
    error = refusal(Path("/k"), reason)
    assert (error is None) == (words is None)
    if error is not None and words is not None:
        assert words in error.message
        assert error.details == reason
        assert error.cure


@pytest.mark.parametrize(
    ("reason", "cure"),
    [
        ("fatal: sha1 file '/tmp/pb-fixups-x/index.lock' write error. Out of diskspace", "TMPDIR"),
        ("fatal: unable to write file: No space left on device", "TMPDIR"),
        ("error: inflate: data stream error", "'git -C /k fsck'"),
    ],
)
def test_a_full_disk_is_no_damage_of_the_repository(reason: str, cure: str) -> None:
    assert cure in cure_of(Path("/k"), reason)
