"""Names of commits, and of kernels that were listed."""

from __future__ import annotations

from bisector.model.commit_graph import as_written, described, listed_id, short_name


def test_commits_are_called_by_their_first_digits() -> None:
    assert short_name("0123456789abcdef" * 2) == "0123456789ab"
    assert short_name("0123456789abcdef" * 2, 10) == "0123456789"


def test_a_listed_kernel_is_called_by_its_whole_name() -> None:
    sha = listed_id("6.12.117-1~deb12u1", "ab" * 32)
    assert short_name(sha) == short_name(sha, 10) == "6.12.117-1~deb12u1"
    assert sha != listed_id("6.12.117-1~deb12u1", "ac" * 32)


def test_what_a_kernel_is_called_is_said_once() -> None:
    commit = "0123456789ab" + "0" * 28
    assert described(commit, "pipe: Be slow") == '0123456789ab ("pipe: Be slow")'
    assert described(commit, "") == "0123456789ab"
    package, folder = listed_id("6.1.172-1", "f" * 64), listed_id("kernel-2", "f" * 64)
    assert described(package, "linux-image-amd64") == '6.1.172-1 ("linux-image-amd64")'
    assert described(folder, "kernel-2") == "kernel-2"


def test_of_full_commit_ids_alone_people_write_the_beginning() -> None:
    assert as_written("0123456789" * 4) == as_written("0123456789" * 6 + "abcd") == "012345678901"
    for name in ("", "v2.6.18", "0123456789" * 4 + "a", "0123456789" * 3, "6.12.117-1@0123456789abcdef"):
        assert as_written(name) == name
