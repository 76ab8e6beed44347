"""Who gets a report: nobody twice, nobody who wants none, and few enough."""

from __future__ import annotations

import pytest

from bisector.adapters.mail.recipients import (
    KERNEL_LIST,
    MAX_RECIPIENTS,
    REGRESSIONS_LIST,
    bare_of,
    choose,
)


def test_author_first_and_nobody_twice() -> None:
    found = choose(["Ann <a@x.org>", "b@x.org"], ["A. Nother <A@X.org>", "list@x.org"], [])
    assert found.addresses == ("Ann <a@x.org>", "b@x.org", "list@x.org") and found.notes == ()


def test_who_has_no_address_is_left_out_with_a_note() -> None:
    found = choose(["Ann <a@x.org>", "B <.b@y.org>"], ["a..b@x.org", "B <.b@y.org>"], [])
    assert found.addresses == ("Ann <a@x.org>",)
    assert found.notes == ("Left out, for want of an address that mail takes: 2.",)


def test_who_is_ignored_gets_nothing_whoever_names_him() -> None:
    found = choose(["Ann <a@x.org>", "b@x.org"], ["b@x.org", "l@x.org"], ["A@x.org", "l@x.org", ""], ["why"])
    assert found.addresses == ("b@x.org",) and found.notes == ("why",)


def test_there_is_a_limit_and_it_is_said() -> None:
    found = choose(["a@x.org"], [f"m{n}@x.org" for n in range(20)], [])
    assert len(found.addresses) == MAX_RECIPIENTS == 15 and found.addresses[0] == "a@x.org"
    assert found.notes == ("6 more are left out: 15 get a mail at most.",)


def test_lists_stay_where_there_are_too_many_people() -> None:
    people = [f"Dev {n} <d{n}@x.org>" for n in range(20)]
    found = choose(people[:3], [*people[3:], "linux-mm@x.org", "linux-arch@x.org"], [])
    assert found.addresses == (*people[:13], "linux-mm@x.org", "linux-arch@x.org")
    assert found.notes == ("7 more are left out: 15 get a mail at most.",)


def test_the_regressions_list_gets_what_the_kernel_list_gets() -> None:
    ann, both = "Ann <a@x.org>", (KERNEL_LIST, REGRESSIONS_LIST)
    assert choose([ann], [KERNEL_LIST], []).addresses == (ann, *both)
    assert choose([ann], both, []).addresses == (ann, *both)
    assert choose([ann], [KERNEL_LIST], [REGRESSIONS_LIST]).addresses == (ann, KERNEL_LIST)
    assert choose([ann], ["linux-mm@x.org"], []).addresses == (ann, "linux-mm@x.org")


@pytest.mark.parametrize(
    ("recipient", "bare"),
    [
        ("Ann <A@x.org>", "a@x.org"),
        (" a@x.org ", "a@x.org"),
        ('"Ann, B." <a@x.org>', "a@x.org"),
        ("Ann <a@x.org> # 5.4+", ""),
        ("a at x.org", ""),
        ("<>", ""),
        ("@x.org", ""),
        ("a@", ""),
        ("ü@x.org", ""),
        ("a@x.org, b@x.org", ""),
        ("Ann <a@x.org\x00>", ""),
        ("A, B <a@x.org>", "a@x.org"),
        ("B <.b@y.org>", ""),
        ("a..b@x.org", ""),
        ("a.@x.org", ""),
        ("a@b@x.org", ""),
        ("a@x..org", ""),
        (f"{'a' * 65}@x.org", ""),
        (f"a@{'x' * 256}", ""),
    ],
)
def test_addresses(recipient: str, bare: str) -> None:
    assert bare_of(recipient) == bare
