"""Private keys that cannot be used say why; files of known hosts are read as OpenSSH reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import paramiko
import pytest

from bisector.adapters.system.ssh_keys import (
    HostKey,
    KeyUnusable,
    is_pinned,
    pin_host_key,
    pinned_keys,
    read_private_key,
)

HOST, PORT = "192.0.2.10", 2222
NAME = f"[{HOST}]:{PORT}"


def keygen(path: Path, *options: str) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-N", "", *options, "-f", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    made = {kind: keygen(folder / kind, "-t", kind) for kind in ("ed25519", "ecdsa", "rsa")}
    made["encrypted"] = keygen(folder / "encrypted", "-t", "ed25519", "-N", "secret")
    made["pkcs8"] = keygen(folder / "pkcs8", "-t", "rsa", "-m", "PKCS8")
    return made


def public(path: Path) -> str:
    return " ".join(path.with_name(f"{path.name}.pub").read_text().split()[:2])


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_keys_of_each_kind_are_read(keys: dict[str, Path], kind: str) -> None:
    assert read_private_key(keys[kind]).get_base64() == public(keys[kind]).split()[1]


def test_a_certificate_beside_a_key_goes_with_it(keys: dict[str, Path], tmp_path: Path) -> None:
    key = keygen(tmp_path / "mine", "-t", "ed25519")
    signed = ["ssh-keygen", "-q", "-s", str(keys["rsa"]), "-I", "me", "-n", "root", f"{key}.pub"]
    subprocess.run(signed, check=True)
    blob = read_private_key(key).public_blob
    assert blob is not None and blob.key_type == "ssh-ed25519-cert-v01@openssh.com"


@pytest.mark.parametrize(
    ("name", "told", "cure"),
    [
        ("encrypted", "is encrypted, and nobody can be asked for its passphrase", "name a key without one"),
        ("pkcs8", "is no private key that can be read here", "ssh-keygen -p -f {}"),
    ],
)
def test_a_key_that_cannot_be_used_says_why(keys: dict[str, Path], name: str, told: str, cure: str) -> None:
    with pytest.raises(KeyUnusable) as caught:
        read_private_key(keys[name])
    assert caught.value.message == f"{keys[name]} {told}"
    assert cure.format(keys[name]) in caught.value.cure


@pytest.mark.parametrize("content", [b"", b"no key", bytes(range(128, 256)) * 9, b"-----BEGIN "])
def test_a_file_without_a_key_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(KeyUnusable, match="is no private key that can be read here"):
        read_private_key(file)


def test_the_public_key_in_its_place_is_told(keys: dict[str, Path]) -> None:
    file = keys["rsa"].with_name("rsa.pub")
    with pytest.raises(KeyUnusable, match="is no private key") as caught:
        read_private_key(file)
    assert caught.value.cure == f"name the private one, {keys['rsa']}"


def test_a_key_that_others_can_read_is_refused_as_by_openssh(tmp_path: Path) -> None:
    """Ansible, which uses OpenSSH, did not get in where perfbisect's own connections did."""
    key = keygen(tmp_path / "key", "-t", "ed25519")
    key.chmod(0o640)
    with pytest.raises(KeyUnusable, match="others can read it") as caught:
        read_private_key(key)
    assert caught.value.cure == f"chmod 600 {key}"


def known_hosts(tmp_path: Path, *lines: str | bytes) -> Path:
    file = tmp_path / "known_hosts"
    file.write_bytes(b"".join((one if isinstance(one, bytes) else one.encode()) + b"\n" for one in lines))
    return file


@pytest.mark.parametrize(
    "line",
    [
        "@cert-authority *.example.org {}",
        "@revoked {name} ssh-ed25519 AAAA",
        "# a comment",
        "other ssh-ed25519 AAA",
        "other ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
        "{name} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
        "{name} ssh-unheard-of AAAAC3NzaC1lZDI1NTE5",
        "|1|bad|bad= {}",
        "192.0.2.1 1024 35 1234567",
        b"caf\xe9 ssh-ed25519 AAAA ol\xe9",
        "",
        "\0",
    ],
)
def test_a_line_that_means_nothing_here_is_passed_over(
    keys: dict[str, Path], tmp_path: Path, line: str | bytes
) -> None:
    """Any of these made perfbisect fail itself, at each machine."""
    own = public(keys["ed25519"])
    before = line if isinstance(line, bytes) else line.format(public(keys["rsa"]), name=NAME)
    (found,) = pinned_keys(known_hosts(tmp_path, before, f"{NAME}  {own} mine"), HOST, PORT)
    assert found.get_base64() == own.split()[1]


def test_names_are_those_of_openssh(keys: dict[str, Path], tmp_path: Path) -> None:
    own = public(keys["rsa"])
    file = known_hosts(tmp_path, f"box,{NAME} {own}")
    assert is_pinned(file, HOST, PORT) and is_pinned(file, "box", 22)
    assert not is_pinned(file, HOST, 22) and not is_pinned(tmp_path / "none", HOST, PORT)
    file = known_hosts(tmp_path, f"{paramiko.HostKeys.hash_host(NAME)} {own}")
    assert is_pinned(file, HOST, PORT) and not is_pinned(file, HOST, 22)


def test_of_each_kind_the_first_key_counts_and_a_revoked_one_never(
    keys: dict[str, Path], tmp_path: Path
) -> None:
    first, second, other = public(keys["ed25519"]), public(keys["encrypted"]), public(keys["ecdsa"])
    lines = [f"{NAME} {one}" for one in (first, second, other)]
    texts = [one.split()[1] for one in (first, second, other)]
    found = pinned_keys(known_hosts(tmp_path, *lines), HOST, PORT)
    assert [key.get_base64() for key in found] == [texts[0], texts[2]]
    found = pinned_keys(known_hosts(tmp_path, *lines, f"@revoked * {first}"), HOST, PORT)
    assert [key.get_base64() for key in found] == [texts[1], texts[2]]


def test_a_key_is_pinned_below_whatever_is_there(keys: dict[str, Path], tmp_path: Path) -> None:
    kind, text = public(keys["ed25519"]).split()
    file = tmp_path / "known_hosts"
    file.write_bytes(b"other ssh-ed25519 AAAA ol\xe9")
    pin_host_key(file, HostKey(NAME, kind, text, "SHA256:..."))
    assert file.read_bytes() == b"other ssh-ed25519 AAAA ol\xe9\n" + f"{NAME} {kind} {text}\n".encode()
    assert is_pinned(file, HOST, PORT)
