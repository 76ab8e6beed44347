"""Keys of SSH: those of servers, which files of known hosts pin, and the private one that lets us in."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from paramiko.pkey import UnknownKeyType

from bisector.adapters.system.files import os_errors_reported
from bisector.errors import InfrastructureError

_KINDS = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)

_MALFORMED = (paramiko.SSHException, InvalidHostKey, UnknownKeyType, ValueError, LookupError)
"""What paramiko raises of a key that is cut off, of another kind, or no key."""

_HASHED = re.compile(r"\|1(\|[A-Za-z0-9+/]{27}=){2}")
"""A name as `HashKnownHosts` writes it: salt and SHA-1, 20 bytes each."""


class KeyUnusable(InfrastructureError):
    """A private key cannot be used."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """A server's key, as known_hosts has it. name: the host's there; fingerprint: as `ssh-keygen -l` says."""

    name: str
    kind: str
    text: str
    fingerprint: str


def read_private_key(file: Path) -> paramiko.PKey:
    """Return the private key of a file, with the certificate beside it. Raises KeyUnusable.

    Given a file, paramiko tries it as a key of each kind and raises what the last one says: that a machine
    does not accept an RSA key came out as 'not a valid OPENSSH private key file'.
    """
    if not file.is_file():
        make = f"name the key that opens it, or make one: ssh-keygen -t ed25519 -f {file}"
        raise KeyUnusable(f"{file} does not exist", cure=make)
    try:
        key, info = _of_any_kind(file), file.stat()
        if info.st_uid == os.getuid() and info.st_mode & 0o077:
            not_used = f"{file}: others can read it, so OpenSSH does not use it"
            raise KeyUnusable(not_used, cure=f"chmod 600 {file}")
        certificate = file.with_name(f"{file.name}-cert.pub")
        if certificate.is_file():
            key.load_certificate(str(certificate))
        return key
    except OSError as error:
        raise KeyUnusable(f"{file}: {error.strerror}", cure="name a key that this user can read") from error
    except paramiko.PasswordRequiredException as error:
        raise KeyUnusable(
            f"{file} is encrypted, and nobody can be asked for its passphrase",
            cure="name a key without one; an SSH agent is not asked",
        ) from error
    except _MALFORMED as error:
        anew = f"have it written in OpenSSH's own form: ssh-keygen -p -f {file}"
        raise KeyUnusable(
            f"{file} is no private key that can be read here",
            details=str(error),
            cure=f"name the private one, {file.with_suffix('')}" if file.suffix == ".pub" else anew,
        ) from error


def _of_any_kind(file: Path) -> paramiko.PKey:
    for kind in _KINDS[:-1]:
        with contextlib.suppress(paramiko.SSHException):
            return kind.from_private_key_file(str(file))
    return _KINDS[-1].from_private_key_file(str(file))


def pinned_keys(file: Path, address: str, port: int) -> list[paramiko.PKey]:
    """Return the keys of a server in a file of known hosts, at most one of each kind. Raises OSError.

    Text may be of any encoding, and only lines of this server are looked at: paramiko's own reader fails at
    authorities of certificates, which count for nothing here, and at any line that is no key. A key that is
    revoked, for whatever host, is not pinned.
    """
    name = known_name(address, port)
    lines = [line.split() for line in file.read_bytes().decode("utf-8", "replace").split("\n")]
    revoked = {words[3] for words in lines if words[:1] == ["@revoked"] and len(words) > 3}
    found: dict[str, paramiko.PKey] = {}
    for words in lines:
        if len(words) < 3 or words[2] in revoked or not any(_is(name, one) for one in words[0].split(",")):
            continue
        with contextlib.suppress(*_MALFORMED):
            entry = HostKeyEntry.from_line(" ".join(words[:3]))
            if entry is not None and entry.key is not None:
                found.setdefault(entry.key.get_name(), entry.key)
    return list(found.values())


def host_key_of(address: str, port: int, key: paramiko.PKey) -> HostKey:
    """Return a server's key as known_hosts has it."""
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return HostKey(known_name(address, port), key.get_name(), key.get_base64(), f"SHA256:{digest}")


def is_pinned(file: Path, address: str, port: int) -> bool:
    """Return whether a file of known hosts has any key of a server."""
    try:
        return bool(pinned_keys(file, address, port))
    except OSError:
        return False


def pin_host_key(file: Path, key: HostKey) -> None:
    """Add a key to a file of known hosts. Raises InfrastructureError."""
    with os_errors_reported(f"cannot write {file}"):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = file.read_bytes() if file.exists() else b""
        with file.open("a", encoding="utf-8") as out:
            end = "" if before.endswith(b"\n") or not before else "\n"
            out.write(f"{end}{key.name} {key.kind} {key.text}\n")


def known_name(address: str, port: int) -> str:
    """Return how a file of known hosts calls a server."""
    return address if port == 22 else f"[{address}]:{port}"


def _is(name: str, known: str) -> bool:
    """Return whether a server is meant by a name in a file of known hosts."""
    return known == name or bool(
        _HASHED.fullmatch(known) and paramiko.HostKeys.hash_host(name, known) == known
    )
