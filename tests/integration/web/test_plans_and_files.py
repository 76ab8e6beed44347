"""Plans, tries, comparisons and archives at a server: printed as on its machine, within bounds.

Of `operations`: `plan_values`, `stored_measurements`, `measurement_values`, `foreign_requests`,
`foreign_bisection`; of the server: `measurement_routes` and `received_file`.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from bisector.app import import_results, transfer
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.web import authority
from bisector.linux.profile import Profile, Symbol
from bisector.model.facts import MonitorResult, MonitorValue
from bisector.model.records import Left, Ran
from bisector.schemas.request import read_accepted
from bisector.schemas.settings import load_settings
from bisector.schemas.web_settings import WebSettings
from tests.support import fake_bisection as fake
from tests.support.command_line import START, Bench
from tests.support.servers.command_client import Client
from tests.support.servers.web import serving

REAL_SOURCE = Wiring.source
"""Before a fixture puts a fake there."""

ASKED = ["--good", "good", "--bad", "bad", "--workload", "pipe-test"]


def bisections(client: Client) -> dict[str, str]:
    rows = json.loads(client.here("list", "--json")[1])
    return {"done" if row["status"] == "done" else "open": row["id"] for row in rows}


def test_a_plan_is_the_same_and_changes_nothing(client: Client) -> None:
    before = client.here("list")
    for command in (["plan"], ["plan", "--json"], ["start", "--dry-run"]):
        there = client.there(*command, *ASKED, "--repo", "linux")
        assert there == client.here(*command, *START[1:]) and there[0] == 0
    assert client.here("list") == before
    code, _, err = client.there("plan", *ASKED[:-2], "--run", "sh")
    assert code == 1 and "--run" in err


def test_a_listed_repository_that_is_gone_is_the_administrators_matter(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cure was 'name a kernel tree with --repo', to somebody who had named the server's."""
    monkeypatch.setattr(Wiring, "source", REAL_SOURCE)
    night = ["nightly", "--branch", "main", "--workload", "pipe-test", "--cron", "0 1 * * *", "--budget", "9"]
    for command in (["start", *ASKED], ["plan", *ASKED], ["series", "add", *night]):
        code, out, err = client.there(*command, "--repo", "linux")
        assert (code, out) == (1, "")
        assert "at the server: there is no folder /fake" in err
        assert "administrator" in err and "--repo" not in err


def test_measured_commits_are_compared_as_on_the_servers_machine(client: Client, tmp_path: Path) -> None:
    done, numbers = bisections(client)["done"], tmp_path / "own.txt"
    numbers.write_text("usecs_per_op: 9\nusecs_per_op: 9.1\n")
    for line in (
        [f"{done}:good", f"{done}:bad"],
        [f"{done}:good", f"{done}:bad", "--json"],
        ["good", "bad", "--bisection", done],
        [f"old={done}:good", f"new={numbers}"],
        [f"{done}:good", f"{done}:no-such-commit"],
        [f"{done}:good", "nothing-of-the-kind"],
    ):
        assert client.there("compare", *line) == client.here("compare", *line), line
    assert client.there("compare", f"{done}:good", f"{done}:bad")[0] == 0
    pages = [tmp_path / "here.html", tmp_path / "there.html"]
    for ask, page in zip((client.here, client.there), pages, strict=True):
        assert ask("compare", f"{done}:good", f"{done}:bad", "--html", str(page))[0] == 0
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_recordings_are_shown_as_on_the_servers_machine(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = bisections(client)["done"]
    line = ["profile", f"{done}:good", f"{done}:bad"]
    assert client.there(*line) == client.here(*line) and "nothing has profiled good" in client.there(*line)[2]
    a, b = Symbol("schedule", "kernel"), Symbol("main", "user")

    def recorded(place: str) -> Profile:
        weight = 3.0 if place == "p0" else 5.0
        stacks = {(b, a): weight, (b,): 2.0}
        return Profile(place, {a: weight, b: 2.0}, {b: weight + 2.0}, stacks, weight + 2.0, 100, notes=("x",))

    store, seen = Wiring(load_settings()).store, (MonitorValue("samples", 100.0),)
    boots = dict.fromkeys(record.boot for _, record in store.records(done) if isinstance(record, Ran))
    for number, boot in enumerate(boots):
        store.append(done, Left(boot, monitors=(MonitorResult("perf-record", f"p{number}", seen),)))
    monkeypatch.setattr(import_results, "read_profile", recorded)
    for more in ([], ["--json"], ["--tree", "schedule"]):
        assert client.there(*line, *more) == client.here(*line, *more) and client.there(*line, *more)[0] == 0


def test_a_commit_is_tried_there_and_a_patch_is_not(client: Client, bench: Bench, tmp_path: Path) -> None:
    done, sha = bisections(client)["done"], bench.lab.graph.shas[fake.CULPRIT + 2]
    for form in ([], ["--json"]):
        line = ["try", done, "--rev", sha, "--dry-run", *form]
        assert client.there(*line) == client.here(*line) and client.there(*line)[0] == 0
    patch = tmp_path / "fix.patch"
    patch.write_text("--- a/x\n")
    for said in (["--apply", str(patch)], ["--apply", str(patch), "--rev", sha]):
        code, out, err = client.there("try", done, *said)
        assert (code, out) == (1, "") and "--apply cannot be asked of a server" in err
        assert "with --rev" in err
    code, _, err = client.there("try", done, "--rev=--upload-pack=sh")
    assert code == 1 and "rev: must be the name or the id of one commit" in err
    assert "there is nothing to try" in client.there("try", done)[2]
    assert not [s for s in Wiring(load_settings()).store.list() if s.id.startswith("try-")]
    headers = {"Authorization": f"Bearer {client.secrets['operate']}"}
    made = httpx.post(
        f"{client.url}/api/v1/bisections/{done}/tries", json={"rev": sha}, headers=headers, timeout=60
    )
    assert made.status_code == 201 and made.json()["status"] == "queued"
    store = Wiring(load_settings()).store
    assert store.status(made.json()["id"]) == "queued"
    (change,) = tokens.access_of(Wiring(load_settings())).changes(1)
    assert (change.who, change.what, change.target) == ("operate", "try", made.json()["id"])
    store.set_status(made.json()["id"], "cancelled")


def names_of(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as members:
        return {m.name: members.extractfile(m).read() for m in members if m.isfile()}  # type: ignore[union-attr]


def test_an_archive_goes_out_and_comes_in_again(client: Client, tmp_path: Path) -> None:
    done = bisections(client)["done"]
    here, there = tmp_path / "here.tar.gz", tmp_path / "there.tar.gz"
    printed = [
        run("export", done, "--output", str(path), "--json")
        for run, path in ((client.here, here), (client.there, there))
    ]
    values = [json.loads(out) for _, out, _ in printed]
    assert values[0]["files"] == values[1]["files"] > 0
    assert values[1]["file"] == str(there) and values[1]["bytes"] == there.stat().st_size
    assert names_of(here) == names_of(there)
    assert client.there("export", done)[1].startswith(f"{done} is in {done}.tar.gz: ")
    assert Path(f"{done}.tar.gz").is_file()
    line = ["export", done, "--output", str(tmp_path / "no" / "x")]
    assert client.there(*line) == client.here(*line)
    code, _, err = client.there("import", str(there))
    assert code == 1 and f"a bisection '{done}' is here already" in err
    report = client.here("report", done)
    wiring = Wiring(load_settings())
    wiring.store.remove(done)
    assert client.there("import", str(there)) == (
        0,
        f"{done} (done); 'perfbisect report {done}' shows it\n",
        "",
    )
    assert client.here("report", done) == report
    assert read_accepted(wiring.store.load(done).request).request.repo == "/fake"
    (change,) = tokens.access_of(wiring).changes(1)
    assert (change.who, change.what, change.target) == ("operate", "import", done)
    assert "no such file" in client.there("import", "nothing.tar.gz")[2]
    assert not [*(wiring.settings.cache_dir / "artefacts").glob("*")]


def changed_archive(archive: Path, changes: dict[str, Any]) -> Path:
    """Write an archive whose request was changed beside another; return it."""
    made = archive.with_name("changed.tar.gz")
    with tarfile.open(made, "w:gz") as members:
        for name, content in names_of(archive).items():
            if name == "bisection.json":
                head = json.loads(content)
                head["request"]["request"].update(changes)
                content = json.dumps(head).encode()
            info = tarfile.TarInfo(name)
            info.size = len(content)
            members.addfile(info, io.BytesIO(content))
    return made


FOREIGN: Sequence[tuple[dict[str, Any], str]] = (
    ({"run": "touch /tmp/owned"}, "--run cannot be asked of a server"),
    ({"apply": ["/etc/passwd"]}, "--apply cannot be asked of a server"),
    ({"trust_repo": True}, "--trust-repo cannot be asked of a server"),
    ({"workload": "/tmp/mine"}, "the server lists no workload 'mine'"),
    ({"good": "--upload-pack=sh"}, "is none that a server takes"),
    ({"param": {"x": ["$(id)"]}}, "is none that a server takes"),
)


def test_an_archive_names_nothing_that_the_server_does_not_list(client: Client, tmp_path: Path) -> None:
    done, archive = bisections(client)["done"], tmp_path / "a.tar.gz"
    assert client.here("export", done, "--output", str(archive))[0] == 0
    wiring = Wiring(load_settings())
    wiring.store.remove(done)
    for changes, words in FOREIGN:
        made = changed_archive(archive, changes)
        code, out, err = client.there("import", str(made))
        assert (code, out) == (1, "") and words in err, err
        assert "import it on the server's machine" in err
    assert done not in [one.id for one in wiring.store.list()]
    assert not [*wiring.settings.state_dir.glob("import-*")]


def test_what_has_not_ended_or_is_of_an_unknown_repository_is_not_taken(
    client: Client, tmp_path: Path
) -> None:
    known = bisections(client)
    wiring = Wiring(load_settings())
    for name, words in (
        ("open", "has not ended (interrupted)"),
        ("done", "no repository that the server lists has "),
    ):
        archive = tmp_path / f"{name}.tar.gz"
        assert client.here("export", known[name], "--output", str(archive))[0] == 0
        wiring.store.remove(known[name])
        with serving(Wiring(load_settings().model_copy(update={"web": WebSettings()}))) as url:
            code, _, err = client.here("--server", url, "import", str(archive))
        assert code == 1 and words in err


def test_records_name_no_file_but_those_that_came_with_them(client: Client, tmp_path: Path) -> None:
    done, archive = bisections(client)["done"], tmp_path / "a.tar.gz"
    wiring = Wiring(load_settings())
    boot = next(record.boot for _, record in wiring.store.records(done) if isinstance(record, Ran))
    folders = {
        "/etc": "",
        f"/x/boots/{boot}/../../../../etc": "",
        f"/x/boots/{boot}/perf-record": f"{wiring.bisection_folder(done)}/boots/{boot}/perf-record",
        "/x/boots/another/perf-record": "",
    }
    for folder in folders:
        wiring.store.append(done, Left(boot, monitors=(MonitorResult("perf-record", folder),)))
    assert client.here("export", done, "--output", str(archive))[0] == 0
    wiring.store.remove(done)
    assert client.there("import", str(archive))[0] == 0
    kept = [r.monitors[0].folder for _, r in wiring.store.records(done) if isinstance(r, Left) and r.monitors]
    assert kept == list(folders.values())


def test_archives_and_plans_are_bounded(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, archive = bisections(client)["done"], tmp_path / "a.tar.gz"
    assert client.here("export", done, "--output", str(archive))[0] == 0
    wiring = Wiring(load_settings())
    wiring.store.remove(done)
    headers = {"Authorization": f"Bearer {client.secrets['operate']}"}
    lost = httpx.post(f"{client.url}/api/v1/imports", content=b"x", headers=headers, timeout=60)
    assert (
        lost.status_code == 400 and "did not arrive as the header Repr-Digest says" in lost.json()["detail"]
    )
    monkeypatch.setattr(transfer, "MAX_BYTES", 100)
    assert "is not an archive that can be unpacked" in client.there("import", str(archive))[2]
    monkeypatch.setattr(authority, "AT_ONCE", 0)
    monkeypatch.setattr(authority, "UPLOADS", 0)
    with serving(Wiring(load_settings())) as url:
        asked = {"good": "good", "bad": "bad", "workload": "pipe-test"}
        for path, body in (("plans", asked), ("imports", {}), (f"bisections/{done}/tries", {"rev": "x"})):
            answer = httpx.post(f"{url}/api/v1/{path}", json=body, headers=headers, timeout=60)
            assert answer.status_code == 429 and answer.headers["Retry-After"] == "5", path
        for path in ("archive", "samples?rev=good", "profile?rev=good"):
            where = f"{url}/api/v1/bisections/{done}/{path}"
            assert httpx.get(where, headers=headers, timeout=60).status_code == 429


def test_roles(client: Client) -> None:
    done = bisections(client)["done"]
    headers = {"Authorization": f"Bearer {client.secrets['read']}"}
    for path in ("imports", f"bisections/{done}/tries"):
        answer = httpx.post(f"{client.url}/api/v1/{path}", json={"rev": "good"}, headers=headers, timeout=60)
        assert answer.status_code == 403 and "this needs 'operate'" in answer.json()["detail"]
    assert (
        httpx.get(f"{client.url}/api/v1/bisections/{done}/archive", headers=headers, timeout=60).status_code
        == 200
    )
    headers = {"Authorization": f"Bearer {client.secrets['worker']}"}
    for below in ("archive", "samples?rev=good", "profile?rev=good"):
        where = f"{client.url}/api/v1/bisections/{done}/{below}"
        assert httpx.get(where, headers=headers, timeout=60).status_code == 403
