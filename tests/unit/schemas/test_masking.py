"""Secrets in commands that a lab wrote are hidden, whatever program takes them; other words stay."""

from __future__ import annotations

import pytest

from bisector.schemas.masking import mask, mask_command, secrets_of

HOLDING = [
    ["ipmitool", "-U", "admin", "-P", "s3cret", "chassis"],
    ["ipmitool", "-Ps3cret"],
    ["sudo", "/usr/bin/ipmitool", "-y", "s3cret", "power", "on"],
    ["./our-wrapper", "-P", "s3cret"],
    ["sh", "-c", "sleep 1; ipmitool -H x -P 's3cret' chassis power on"],
    ["bash", "-c", "bash -c 'ipmitool -P s3cret x'"],
    ["sh", "-c", "'s h' -P s3cret"],
    ["fence_apc", "-p", "s3cret", "-a", "x"],
    ["ipmipower", "-p", "s3cret"],
    ["curl", "-u", "bob:s3cret", "https://pdu"],
    ["curl", "https://bob:s3cret@pdu/y"],
    ["curl", "-H", "Authorization: Basic s3cret"],
    ["sh", "-c", "curl -H 'X-Auth-Token: s3cret' https://pdu"],
    ["pdu", "--password=s3cret"],
    ["pdu", "--password", "s3cret"],
    ["pdu", "--auth-token", "s3cret"],
    ["env", "IPMI_PASSWORD=s3cret", "ipmitool", "-E"],
    ["fence_ipmilan", "passwd=s3cret"],
    ["snmpset", "-v2c", "-c", "s3cret", "pdu"],
    ["sshpass", "-p", "s3cret", "ssh", "pdu", "off 3"],
    ["sshpass", "-ps3cret", "ssh", "pdu"],
    ["sshpass", "-vp", "s3cret", "ssh", "pdu"],
    ["env", "SSHPASS=s3cret", "sshpass", "-e", "ssh", "pdu"],
    ["racadm", "-r", "bmc", "-u", "root", "-p", "s3cret", "serveraction", "powercycle"],
    ["/opt/dell/racadm", "-ps3cret"],
    ["redfishtool", "-r", "bmc", "-u", "root", "-p", "s3cret", "Systems", "reset", "On"],
    ["python3", "redfishtool.py", "-p", "s3cret"],
    ["ilorest", "reboot", "--url", "bmc", "-u", "root", "-p", "s3cret"],
    ["curl", "--user", "bob:s3cret", "https://pdu"],
    ["curl", "--user=bob:s3cret", "https://pdu"],
    ["curl", "-su", "bob:s3cret", "https://pdu"],
    ["curl", "-ksubob:s3cret", "https://pdu"],
    ["curl", "--proxy-user", "bob:s3cret", "https://pdu"],
    ["curl", "-U", "bob:s3cret", "https://pdu"],
    ["curl", "--oauth2-bearer", "s3cret", "https://pdu"],
    ["sh", "-c", "curl -fsSu 'bob:s3cret' https://pdu"],
    ["http", "-a", "bob:s3cret", "POST", "https://pdu/off"],
    ["http", "--auth=bob:s3cret", "https://pdu/off"],
    ["https", "--auth", "bob:s3cret", "pdu/off"],
    ["smbclient", "-U", "bob%s3cret", "//box/c"],
    ["smbclient", "-Ubob%s3cret", "//box/c"],
    ["net", "rpc", "shutdown", "-I", "box", "-U", "bob%s3cret"],
    ["rpcclient", "--user=bob%s3cret", "box"],
    ["pdu", "--pw", "s3cret"],
    ["pdu", "--pw=s3cret"],
    ["plink", "-pw", "s3cret", "pdu"],
    ["pdu", "--admin-pw", "s3cret"],
]


@pytest.mark.parametrize("command", HOLDING, ids=" ".join)
def test_a_secret_is_hidden_and_found(command: list[str]) -> None:
    shown = mask_command(command)
    assert "s3cret" not in " ".join(shown)
    assert "***" in " ".join(shown)
    assert len(shown) == len(command)
    assert "s3cret" in secrets_of(command)


@pytest.mark.parametrize(
    "command",
    [
        ["mkdir", "-p", "/x"],
        ["git", "-C", "/a", "log", "-p", "x"],
        ["ipmitool", "-p", "623", "-E", "-f", "/etc/bmc.password", "chassis"],
        ["ssh", "-p", "22", "box", "sudo -u root reboot"],
        ["sh", "-c", "  two  blanks 'and quotes' \"kept\" it's"],
        ["make", "-j2", "P=1"],
        ["pdu", "-P", "-v"],
        ["sshpass", "-e", "ssh", "-p", "22", "box"],
        ["curl", "-sS", "-XPUT", "-o", "u", "-kX", "POST", "https://pdu"],
        ["sudo", "--user", "root", "-u", "root", "reboot"],
        ["pdu", "-a", "x", "--auth", "basic", "-U", "bob", "--opw", "x"],
        [],
    ],
    ids=" ".join,
)
def test_other_words_stay(command: list[str]) -> None:
    assert mask_command(command) == tuple(command)
    assert secrets_of(command) == frozenset()


def test_the_port_behind_sshpass_stays() -> None:
    command = ["sshpass", "-p", "s3cret", "ssh", "-p", "22", "pdu"]
    assert mask_command(command) == ("sshpass", "-p", "***", "ssh", "-p", "22", "pdu")
    assert secrets_of(command) == {"s3cret"}


def test_what_a_program_echoes_is_hidden_as_a_word() -> None:
    assert mask("login admin/on failed for on: bond", {"on"}) == "login admin/*** failed for ***: bond"
    assert mask("a.b+c d", {"a.b+c", ""}) == "*** d"


@pytest.mark.parametrize(
    "text", ["'" * 10_000, '"' * 9_999, "'\" " * 3_000, 'a"b c"d -P s3cret', "\\" * 5_001, "x='a\n" * 2_000]
)
def test_hostile_quotes_do_no_harm(text: str) -> None:
    assert "s3cret" not in mask_command(["sh", "-c", text])[2]
