"""`perfbisect profile` from the command line: trees, a flame graph, what a commit touches, counted calls."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import git
import pytest

from bisector.app import import_results
from bisector.errors import ExitCode
from bisector.interfaces.cli import run
from bisector.linux.annotated_code import AnnotatedFunction, CodePart, Instruction

OLD = "db;main;sys_io_[k];alloc_[k] 600\ndb;main;sys_io_[k];list_del_[k] 400\ndb;main 9000\n"
NEW = "db;main;sys_io_[k];alloc_[k] 1300\ndb;main;sys_io_[k];list_del_[k] 400\ndb;main 8300\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "old.folded").write_text(OLD)
    (tmp_path / "new.folded").write_text(NEW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_tree_and_a_flame_graph(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", "old.folded", "new.folded", "--tree", "alloc", "--flame", "diff.svg"]) == 0
    out, err = capsys.readouterr()
    assert err == "flame graph written to diff.svg\n"
    assert "[k] alloc     6.00%       13.00%      +7.00   more" in out
    assert "alloc is called by" in out
    assert "6.00%       13.00%      +7.00     [k] sys_io" in out
    flat = " ".join(out.split())
    assert "More in new.folded than in old.folded: alloc +7.00 points." in flat
    drawing = ElementTree.parse(place / "diff.svg").getroot()
    titles = [t.text or "" for t in drawing.iter("{http://www.w3.org/2000/svg}title")]
    assert "[k] alloc: 13.00%, was 6.00% (+7.00 points)" in titles


def test_what_a_commit_changes_is_marked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repo = git.Repo.init(place / "linux")
    with repo.config_writer() as config:
        config.set_value("user", "name", "n")
        config.set_value("user", "email", "e")
    source = place / "linux" / "slab.c"
    source.write_text("void alloc(void)\n{\n\tx();\n}\n\nvoid inlined(void)\n{\n\ty();\n}\n")
    repo.git.add("-A")
    repo.git.commit("-m", "one")
    source.write_text(source.read_text().replace("();\n", "(1);\n"))
    repo.git.commit("-am", "two")
    assert run(["profile", "old.folded", "new.folded", "--repo", "linux", "--commit", "HEAD", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [s["name"] for s in found["symbols"] if s["touched"]] == ["alloc"]
    assert found["touched_but_absent"] == ["inlined"]


def test_one_side_from_standard_input(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(NEW.encode())))
    assert run(["profile", "before=old.folded", "after=-", "--top", "2"]) == 0
    assert "+7.00   more" in capsys.readouterr().out


def test_counted_calls(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "  Function  Hit    Time     Avg      s^2\n  --------  ---    ----     ---      ---\n"
    (place / "a.txt").write_text(f"{head}  memmove   1000    500.000 us     0.500 us     0.000 us\n")
    (place / "b.txt").write_text(f"{head}  memmove   1500    1500.000 us    1.000 us     0.000 us\n")
    assert run(["profile", "a.txt", "b.txt"]) == 0
    flat = " ".join(capsys.readouterr().out.split())
    assert "[k] memmove 1000 1500 +50.00% 0.500 us 1.000 us +100.00%" in flat
    assert "b.txt calls memmove 50.0% more often, and a call takes 100.0% longer." in flat


def test_shares_and_counts_cannot_be_compared(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "a.txt").write_text("  Function  Hit\n  --------  ---\n  memmove  10\n")
    assert run(["profile", "a.txt", "old.folded"]) == 1
    assert "one profile holds shares, the other one counts of calls" in capsys.readouterr().err


def test_what_is_there_and_cannot_be_read_is_no_missing_file(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "loop").symlink_to("loop")
    assert run(["profile", "loop", "old.folded"]) == 1
    assert "loop: cannot be read: Too many levels of symbolic links" in capsys.readouterr().err
    assert run(["profile", "v1", "old.folded"]) == 1
    told = capsys.readouterr().err
    assert "v1: no such file" in told and "BISECTION:REV" in told


def test_a_flame_graph_that_cannot_be_written(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", "old.folded", "new.folded", "--flame", "absent/diff.svg"]) == 1
    assert f"{Path('absent/diff.svg')}: cannot be written" in capsys.readouterr().err
    assert not (place / "absent").exists()


@pytest.mark.parametrize("option", ["--flame", "--html"])
def test_a_result_does_not_replace_what_was_recorded(
    option: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profile", "old.folded", "new=new.folded", option, "./new.folded"]) == 1
    assert f"{option}: new.folded is one of the inputs" in capsys.readouterr().err
    assert (place / "new.folded").read_text() == NEW


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--html", "x.html", "--flame", "./x.html"], "--html and --flame both name x.html"),
        (["--annotate", "alloc", "--tree", "alloc"], "--annotate and --tree exclude each other as text"),
    ],
)
def test_nothing_that_was_asked_for_is_dropped(
    options: list[str], said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profile", "old.folded", "new.folded", *options]) == 1
    assert said in capsys.readouterr().err
    assert not (place / "x.html").exists()


def annotated(name: str, *, known: bool = True, function: str = "lock") -> AnnotatedFunction:
    part = CodePart((Instruction(1 << 63, "ret", 7.0),))
    return AnnotatedFunction(name, function, known, (part,) if known else (), own=7.0)


def test_a_function_is_annotated_of_both_kernels(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"a": True, "b": True}
    monkeypatch.setattr(
        import_results,
        "annotated_functions",
        lambda profile, names: [annotated(profile.name, known=known[profile.name]) for _ in names],
    )
    words = ["profile", "a=old.folded", "b=new.folded", "--annotate", "lock"]
    assert run(words) == 0
    out = capsys.readouterr().out
    assert "lock in a: 7 instructions a run" in out and "lock in b: 7 instructions a run" in out
    assert "7           +0x0  ret" in out
    assert run([*words, "--json"]) == 0
    assert [one["profile"] for one in json.loads(capsys.readouterr().out)["annotated"]] == ["a", "b"]
    known["b"] = False
    assert run(words) == 0
    assert "lock in b: this kernel has no such function" in capsys.readouterr().out
    known["a"] = False
    assert run(words) == ExitCode.WRONG_REQUEST
    assert "neither kernel has a function 'lock'" in capsys.readouterr().err


def test_a_counted_function_outside_of_the_kernels_text_is_said_to_be_that(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        import_results,
        "annotated_functions",
        lambda profile, names: [annotated(profile.name, known=False, function=one) for one in names],
    )
    words = ["profile", "a=old.folded", "b=new.folded", "--annotate", "alloc"]
    assert run(words) == ExitCode.WRONG_REQUEST
    said = capsys.readouterr().err
    assert "'alloc' is not in the kernel's own text: its code cannot be shown" in said
    assert "Code of modules, of programs" in said and "did you mean" not in said
