"""Passwords in commands that a lab wrote: hidden wherever a command is shown, in errors, details and logs.

perfbisect itself hands secrets on by environment or file. Commands of an inventory may hold one all the same,
such as `ipmitool -P secret`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HIDDEN = "***"

_TOKEN = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\]|['"\\])+""", re.DOTALL)
"""A word of a shell's line, with its quotes."""

_LONG_OPTION = re.compile(
    r"--?(?:[\w-]*(?:passwd|password|passphrase|pass|secret|token|apikey|api-key)|(?:[\w-]*-)?pw)(?:=(.+))?",
    re.I | re.S,
)
"""--password VALUE, -passwd=VALUE, --auth-token=VALUE, --pw VALUE."""

_INSIDE = (
    re.compile(
        r"[\w.-]*(?:sshpass|passw(?:or)?d|passphrase|secret|token|community)[\w.-]*=(.+)", re.I | re.S
    ),
    re.compile(r"\w+://[^/\s:@]*:([^/\s@]+)@.*", re.S),
    re.compile(r"['\"]?(?:Authorization|X-Auth-Token)\s*:\s*(?:\w+\s+)?(.+?)['\"]?", re.I | re.S),
)
"""Words that hold a secret: IPMI_PASSWORD=VALUE, https://user:PASSWORD@host, 'X-Auth-Token: VALUE'."""

_MAX_DEPTH = 5
"""How deep shell lines are looked into that contain further ones: ssh box "sudo sh -c '...'" has three
levels."""

_USUAL_SHORT_OPTIONS = "P"
"""Of every program: wrappers around ipmitool take its options."""


@dataclass(frozen=True, slots=True)
class _Program:
    """A program and its options that a secret follows.

    name: a regular expression; letters: its options of one letter; flags: options without a value that may
    stand before one in the same word; long: a regular expression of its options of several letters, beside
    those of every program; joint: what stands between a name and its password.
    """

    name: str
    letters: str = ""
    flags: str = ""
    long: str = ""
    joint: str = ":"

    def option(self, word: str) -> re.Match[str] | None:
        """Return how a word is such an option; what follows it in the word is the first group."""
        flags = f"[{re.escape(self.flags)}]*" if self.flags else ""
        short = re.fullmatch(rf"-{flags}[{_USUAL_SHORT_OPTIONS}{self.letters}](.+)?", word, re.DOTALL)
        if short or not self.long:
            return short
        return re.fullmatch(rf"--(?:{self.long})(?:=(.+))?", word, re.DOTALL)


_ANY_PROGRAM = _Program("")

_PROGRAMS = (
    _Program(r"fence_\w+", "p"),  # FenceAgentAPI: -p is the password
    _Program(r"ipmi(?!tool)[\w-]+|bmc-[\w-]+", "pk"),  # FreeIPMI: -p password, -k the BMC's key
    _Program(r"ipmitool", "ky"),  # the BMC's key
    _Program(r"snmp\w+", "cAX"),  # net-snmp: community, passphrases
    _Program(r"curl", "uU", "#012346aBfgGiIjJklLMnNOpqRsSvZ", "user|proxy-user|oauth2-bearer"),
    _Program(r"https?|xhs?", "a", "jfxvhmbSdcFI", "auth"),  # HTTPie: NAME:PASSWORD
    _Program(r"racadm|redfishtool(?:\.py)?|ilorest", "p"),
    _Program(r"sshpass", "p", "v"),
    _Program(r"ssh|scp|sftp|rsync", ""),  # behind sshpass: -p is a port
    _Program(r"smbclient|rpcclient|net|winexe", "U", long="user", joint="%"),  # NAME%PASSWORD
)


def mask_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command without the secrets that its options hold."""
    return tuple(_read(command)[0])


def secrets_of(command: Sequence[str]) -> frozenset[str]:
    """Return the secrets that a command's options hold."""
    return frozenset(_read(command)[1])


def mask(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these secrets."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
    return text


def _read(words: Sequence[str], depth: int = 0) -> tuple[list[str], list[str]]:
    """Return the words with their secrets hidden, and the secrets. depth: of lines in each other."""
    shown: list[str] = []
    found: list[str] = []
    program, expected = _ANY_PROGRAM, False
    for word in words:
        inside = [match[1] for pattern in _INSIDE if (match := pattern.fullmatch(word))]
        option = _LONG_OPTION.fullmatch(word) or program.option(word)
        if expected and not re.fullmatch("-[A-Za-z]", word):  # else another option: there was no value
            value = word
        elif inside or option:
            value = inside[0] if inside else option[1] or "" if option else ""
        elif re.search(r"\s", word):  # a line for a shell
            text, more = _read_line(word, depth + 1)
            shown.append(text)
            found += more
            continue
        else:
            value, name = "", _unquoted(word).rsplit("/", 1)[-1]
            program = next((one for one in _PROGRAMS if re.fullmatch(one.name, name)), program)
        expected = option is not None and not value
        shown.append(word.replace(value, HIDDEN) if value else word)
        secret = _unquoted(value)
        found += [secret, secret.partition(program.joint)[2]]  # curl -u NAME:PASSWORD
    return shown, [secret for secret in found if secret]


def _read_line(line: str, depth: int) -> tuple[str, list[str]]:
    """Do the same with a line of a shell; its blanks stay as they are."""
    places = [match.span() for match in _TOKEN.finditer(line)]
    if depth > _MAX_DEPTH or places == [(0, len(line))]:
        if depth <= _MAX_DEPTH and len(line) > 1 and line[0] == line[-1] in "'\"":  # one quoted word
            text, found = _read_line(line[1:-1], depth + 1)
            return f"{line[0]}{text}{line[-1]}", found
        places = [match.span() for match in re.finditer(r"[^\s'\"]+", line)]
    shown, found = _read([line[start:end] for start, end in places], depth)
    out, last = "", 0
    for (start, end), word in zip(places, shown, strict=True):
        out, last = f"{out}{line[last:start]}{word}", end
    return out + line[last:], found


def _unquoted(word: str) -> str:
    return re.sub(r"^(['\"])(.*)\1$", r"\2", word, flags=re.DOTALL)
