"""What `[mail]` and `[webhook]` may hold, and in which words other things are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas.mail_settings import is_loopback
from bisector.schemas.settings import Settings, load_settings

MAIL = '[mail]\nhost = "mail.example.org"\nfrom = "Lab <lab@example.org>"\n'


def load(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "perfbisect.toml"
    file.write_text(text)
    return load_settings(file, environment={"PERFBISECT_MAIL_PASSWORD": "x"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{MAIL}lab = ["a@x.org", "b"]', r":4: key 'mail.lab.1': must be an address: name@example.org"),
        (f'{MAIL}lab = ["a@x.org, b@x.org"]', "must be an address"),
        (f'{MAIL}lab = ["a@x.org\\nBcc: b@x.org"]', "key 'mail.lab.0'"),
        (f'{MAIL}lab = ["-oX@x.org -v"]', "must be an address"),
        (f'{MAIL}lab = ["B <.b@x.org>"]', "must be an address"),
        (f'{MAIL}opt_out = ["a..b@x.org"]', "must be an address"),
        (f'{MAIL}opt_out = ["A <a@x.org>"]', "must be an address: name@example.org"),
        (f"{MAIL}port = 0", "key 'mail.port': must be from 1 to 65,535"),
        (f"{MAIL}daily_limit = 0", "key 'mail.daily_limit'"),
        (f'{MAIL}security = "ssl"', "key 'mail.security'"),
        (f'{MAIL}user = "lab"\nsecurity = "none"', "a password must not cross a network without TLS"),
        (f'{MAIL}password_file = "/p"', "is of no use without 'user'"),
        (f'{MAIL}user = "lab"\npassword_file = "p"', "must be an absolute path"),
        (f'{MAIL}password = "topsecret"', "unknown key 'mail.password'; did you mean 'password_file'"),
        ('[mail]\nhost = "m"', "the key 'mail.from' is missing"),
        ('[mail]\nhost = "m; rm"\nfrom = "a@b"', "key 'mail.host': must be a host's name"),
        ('[webhook]\nurl = "http://hooks.example.org/"', "must be https://HOST/PATH"),
        ('[webhook]\nurl = "https://user:topsecret@hooks.example.org/"', "no password in it"),
        ('[webhook]\nurl = "file:///etc/passwd"', "must be https://HOST/PATH"),
        ('[webhook]\nurl = "https://x:99999/"', "must be https://HOST/PATH"),
        ('[webhook]\nsecret = "topsecret"', "unknown key 'webhook.secret'"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message.replace("[", r"\[")) as error:
        load(tmp_path, text)
    assert error.value.cure and "perfbisect.toml" in error.value.message


def test_what_is_taken(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        f'{MAIL}lab = ["Zoë <z@x.org>", "b@x.org"]\n[webhook]\nurl = "https://Hooks.example.org/a?b=c"\n'
        'private_hosts = ["ci.lab", "[fd00::1]"]\n',
    )
    assert found.mail is not None and found.webhook is not None
    assert found.mail.sender == "Lab <lab@example.org>" and found.mail.used_port == 587
    assert found.webhook.trusted_hosts == {"hooks.example.org", "ci.lab", "fd00::1"}


def test_a_password_to_this_machine_needs_no_tls(tmp_path: Path) -> None:
    load(tmp_path, '[mail]\nhost = "localhost"\nsecurity = "none"\nuser = "a"\nfrom = "a@b"')


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("127.0.0.1.nip.io", False),
        ("10.0.0.1", False),
    ],
)
def test_hosts_that_can_only_be_this_machine(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
