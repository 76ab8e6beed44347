"""The rules of every command line: nothing twice, nothing empty, nothing ignored, no argument without end."""

from __future__ import annotations

import pytest

from bisector.errors import RequestError
from bisector.interfaces.cli.argument_rules import IGNORED, MAX_ARGUMENT_CHARACTERS, refuse_unusable
from tests.support.command_line import parse


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("compare a b --alpha 0.1 --alpha 0.2", "--alpha is given 2 times: '0.1', '0.2'"),
        ("compare a b --better lower --better lower", "--better is given 2 times: 'lower', 'lower'"),
        ("start --testbed a --testbed b --testbed a", "--testbed is given 2 times: 'a', 'a'"),
        ("--config a --config b list", "--config is given 2 times: 'a', 'b'"),
        ("plan --recipe ''", "--recipe is empty"),
        ("report ''", "identity is empty"),
        ("kernel gc --keep 5 --all", "--keep has no effect with --all"),
        ("workload run x --testbed y", "--testbed has no effect without --rev"),
    ],
)
def test_a_broken_rule_is_refused(line: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(f"perfbisect {line}")
    assert caught.value.message == message
    assert caught.value.cure


@pytest.mark.parametrize(
    "line",
    [
        "start --testbed a --testbed b --json",
        "compare same same --metric a --metric b --better a=lower --better b=higher",
        "workload run x --testbed y --rev HEAD",
        "kernel gc --keep 5",
        "list --json --json",
    ],
)
def test_what_keeps_the_rules_is_taken(line: str) -> None:
    parse(f"perfbisect {line}")


@pytest.mark.parametrize("rule", IGNORED, ids=lambda rule: " ".join(rule[:2]))
def test_the_table_names_what_exists(rule: tuple[str, str, str, str]) -> None:
    """An option that was renamed would make its rule silent."""
    command, option, _, other = rule
    needed = {"compare": "a b", "profile": "a b", "workload run": "x"}.get(command, "")
    for name in (option, other):
        for value in (" 1", ""):  # a flag takes no value
            try:
                parse(f"perfbisect {command} {needed} {name}{value}" if name != "REV" else "perfbisect list")
            except RequestError:
                break
            except Exception:
                continue
            else:
                break
        else:
            pytest.fail(f"{command} has no {name}")


def test_arguments_are_bounded_and_text() -> None:
    refuse_unusable(["x" * MAX_ARGUMENT_CHARACTERS, "Grüße", "--note"])
    with pytest.raises(RequestError, match="has 4,097 characters"):
        refuse_unusable(["x" * (MAX_ARGUMENT_CHARACTERS + 1)])
    with pytest.raises(RequestError, match="is not text in UTF-8"):
        refuse_unusable([b"caf\xe9".decode(errors="surrogateescape")])
