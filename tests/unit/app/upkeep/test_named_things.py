"""Each thing that settings name is looked for, and told by its key where it is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.app.upkeep.named_things import require_named
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.settings import load_settings
from tests.support.small_git import SmallGit

MAIL = '[mail]\nhost = "mail.example"\nfrom = "lab@example.org"\nlab = ["a@example.org"]\nuser = "lab"\n'


def look(folder: Path, text: str) -> None:
    file = folder / "perfbisect.toml"
    file.write_text(text)
    require_named(Wiring(load_settings(file, environment={})))


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ('lab = "none.yml"\n', "lab", "no such inventory"),
        ('repo = "none"\n', "repo", "there is no folder"),
        ('workload = "nope"\n', "workload", "no workload 'nope'"),
        ('recipe = "nope"\n', "recipe", "unknown recipe 'nope'"),
        ('token_file = "none"\n', "token_file", "No such file"),
        (MAIL + 'password_file = "/none"\n', "mail.password_file", "No such file"),
        ('[webhook]\nsecret_file = "/none"\n', "webhook.secret_file", "No such file"),
        ('[web.repositories]\nlinux = "/none"\n', "web.repositories.linux", "there is no folder /none"),
        ('[web]\nworkloads = ["pipe-test", "nope"]\n', "web.workloads", "no workload 'nope'"),
        ('lab = "lab.yml"\n[web]\ntestbeds = ["box", "bax"]\n', "web.testbeds", "'bax'"),
    ],
)
def test_what_is_not_there_is_told_by_its_key(tmp_path: Path, text: str, key: str, said: str) -> None:
    inventory(tmp_path)
    with pytest.raises(RequestError) as error:
        look(tmp_path, text)
    assert f"key '{key}': " in error.value.message and said in error.value.message


def test_a_shared_folder_that_is_not_mounted_is_no_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError) as error:
        look(tmp_path, 'artefacts = "/none"\n')
    assert error.value.message == "key 'artefacts': there is no folder /none"


def test_a_web_server_as_store_of_artefacts_is_no_folder(tmp_path: Path) -> None:
    look(tmp_path, 'artefacts = "https://perf.example"\n')


def test_all_that_is_there_is_well(tmp_path: Path) -> None:
    inventory(tmp_path)
    repo = SmallGit(tmp_path / "repo").make("a").path
    secret = tmp_path / "secret"
    secret.write_text("word")
    secret.chmod(0o600)
    named = {name: json.dumps(str(path)) for name, path in (("repo", repo), ("here", tmp_path))}
    look(
        tmp_path,
        f'lab = "lab.yml"\nrepo = "repo"\nworkload = "pipe-test"\nartefacts = {named["here"]}\n'
        f'token_file = "secret"\nserver = "https://perf.example"\n{MAIL}password_file = "{secret}"\n'
        f'[webhook]\nsecret_file = "{secret}"\n[web]\nworkloads = ["pipe-test"]\ntestbeds = ["box"]\n'
        f"[web.repositories]\nlinux = {named['repo']}\n",
    )


def inventory(folder: Path) -> None:
    (folder / "lab.yml").write_text(
        "testbeds: {hosts: {box: {perfbisect_kind: local, ansible_connection: local}}}\n"
    )
