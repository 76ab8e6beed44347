"""The address that mails name a repository by."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.git.public_url import public_url, without_secrets
from tests.support.small_git import SmallGit

URL = "https://git.example.org/torvalds/linux.git"


@pytest.mark.parametrize(
    ("configured", "said"),
    [
        (URL, URL),
        ("https://bot:geheim@git.example.org:8443/linux.git", "https://git.example.org:8443/linux.git"),
        (
            "https://token@git.example.org/linux.git?private=geheim#geheim",
            "https://git.example.org/linux.git",
        ),
        ("https://a:geheim@b@git.example.org/linux.git", "https://git.example.org/linux.git"),
        ("ssh://git@git.example.org/~ann/linux.git", "ssh://git.example.org/~ann/linux.git"),
        ("git@git.example.org:ann/linux.git", "git.example.org:ann/linux.git"),
        ("git://[2606:4700::1]/linux.git", ""),
        ("https://bot:ge/heim@git.example.org/linux.git", ""),
        ("https://git.example.org/geheim@x/linux.git", ""),
        ("https://git.example.org:99999999/linux.git", ""),
        ("https://[git/linux.git", ""),
        ("/home/ann/linux", ""),
        ("file:///home/ann/linux", ""),
        ("ext::sh -c id", ""),
        ("mirror:linux.git", ""),
        ("git://mirror/linux.git", ""),
        ("git://10.0.0.5/linux.git", ""),
        ("git://127.0.0.1:9418/linux.git", ""),
        ("git://8.8.8.8/linux.git", ""),
        ("https://git.example.org/linux\n#regzbot dup: 1", ""),
        ("https://git.example.org/linux\x1b[31m.git", ""),
        ("https://git.example.org/linux\u202e.git", ""),
        ("https://git.exämple.org/linux.git", ""),
        ("https://git.example.org/" + "x" * 200, ""),
        ("", ""),
    ],
)
def test_of_an_address_stays_what_others_need_and_nothing_else(configured: str, said: str) -> None:
    assert without_secrets(configured) == said


def test_the_remote_of_a_branch_is_named_if_it_has_the_commit(tmp_path: Path) -> None:
    origin = SmallGit(tmp_path / "origin").make("a\nb: a\n")
    origin.git("clone", "--quiet", str(origin.path), str(tmp_path / "clone"))
    clone = SmallGit(tmp_path / "clone")
    clone.git("remote", "add", "another", "https://git.example.org/another.git")
    assert public_url(clone.path, "", origin.ids["b"]) == "", "a folder"
    clone.git("remote", "set-url", "origin", URL)
    assert public_url(clone.path, "", origin.ids["b"]) == URL
    assert public_url(clone.path, "origin", origin.ids["a"]) == URL
    assert public_url(clone.path, "another", origin.ids["a"]) == "https://git.example.org/another.git"
    assert public_url(clone.path, "none", origin.ids["a"]) == ""
    assert public_url(clone.path, "", "f" * 40) == "", "git does not have it"
    clone.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "mine")
    own = clone.git("rev-parse", "HEAD").strip()
    assert public_url(clone.path, "", own) == "", "nobody pushed it"
    assert public_url(origin.path, "", origin.ids["a"]) == "", "no remote"


def test_a_mirror_keeps_its_remotes_branches_as_its_own(tmp_path: Path) -> None:
    origin = SmallGit(tmp_path / "origin").make("a\n")
    origin.git("clone", "--quiet", "--bare", str(origin.path), str(tmp_path / "mirror.git"))
    mirror = tmp_path / "mirror.git"
    origin.git("-C", str(mirror), "remote", "set-url", "origin", URL)
    assert public_url(mirror, "", origin.ids["a"]) == URL
