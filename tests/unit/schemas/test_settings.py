"""Settings and requests: which source is stronger, and how mistakes are answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from bisector.errors import RequestError
from bisector.model.goal import Goal, Metric, Threshold
from bisector.schemas import serialization
from bisector.schemas.commit_priors import Priors
from bisector.schemas.request import Accepted, Request
from bisector.schemas.settings import Settings, find_settings_file, load_settings


def test_nothing_said_gives_the_defaults(tmp_path: Path) -> None:
    settings = load_settings(start=tmp_path, environment={})
    assert settings.alpha == 0.05
    assert settings.recipe == "auto"
    assert settings.state_dir.name == settings.cache_dir.name == "perfbisect"


def test_file_then_environment_then_command_line(tmp_path: Path) -> None:
    (tmp_path / "perfbisect.toml").write_text('recipe = "file"\nalpha = 0.01\njobs = 3\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    environment = {"PERFBISECT_ALPHA": "0.02", "PERFBISECT_JOBS": "4"}
    settings = load_settings(None, {"jobs": 5, "recipe": None}, start=inner, environment=environment)
    assert (settings.recipe, settings.alpha, settings.jobs) == ("file", 0.02, 5)


def test_paths_of_the_file_start_at_its_folder(tmp_path: Path) -> None:
    (tmp_path / "perfbisect.toml").write_text('state_dir = "state"\nlab = "/abs/lab.yml"\n')
    settings = load_settings(start=tmp_path, environment={})
    assert settings.state_dir == tmp_path / "state"
    assert settings.lab == Path("/abs/lab.yml")


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "perfbisect.toml").write_text("alpha = 0.01\n")
    (inner / "perfbisect.toml").write_text("alpha = 0.1\n")
    assert find_settings_file(inner) == inner / "perfbisect.toml"
    assert load_settings(start=inner, environment={}).alpha == 0.1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("alfa = 0.1\n", ("perfbisect.toml:1", "alfa", "did you mean 'alpha'")),
        ("jobs = 2\nalpha = 0.7\n", ("perfbisect.toml:2", "alpha", "below 0.5")),
        ("alpha = \n", ("not valid TOML",)),
        ("alpha = 1979-05-27T07:32:00Z\n", ("toml:1", "must be a number (got 1979-05-27T07:32:00+00:00)")),
    ],
)
def test_a_mistake_in_the_file_names_line_and_key(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    (tmp_path / "perfbisect.toml").write_text(text)
    with pytest.raises(RequestError) as caught:
        load_settings(start=tmp_path, environment={})
    assert all(word in caught.value.message for word in words), caught.value.message
    assert caught.value.exit_code == 1


def test_a_mistake_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="PERFBISECT_JOBS"):
        load_settings(start=tmp_path, environment={"PERFBISECT_JOBS": "many"})
    with pytest.raises(RequestError, match="PERFBISECT_STATE_DIR"):
        load_settings(start=tmp_path, environment={"PERFBISECT_STATEDIR": "/x"})


def test_a_missing_config_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no such file"):
        load_settings(tmp_path / "none.toml", environment={})
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RequestError, match=r"--config .*loop: cannot be read: Too many levels"):
        load_settings(tmp_path / "loop", environment={})


def test_the_working_folder_is_a_folder_as_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings(overrides={"lab": Path(".")}, environment={}).lab == tmp_path
    assert load_settings(environment={"PERFBISECT_LAB": "."}).lab == tmp_path
    (tmp_path / "perfbisect.toml").write_text('lab = "."\n')
    assert load_settings(environment={}).lab == tmp_path
    (tmp_path / "perfbisect.toml").write_text('lab = ""\n')
    with pytest.raises(RequestError, match="'lab': must be the path of a file or folder, and is empty"):
        load_settings(environment={})


def accepted(**changes: object) -> Accepted:
    goal = Goal(Metric("real", "s", "lower", Threshold(0.05)))
    values = {
        "request": Request(repo="/r", good="v1", bad="v2", workload="pipe-test"),
        "good": "a" * 40,
        "bad": "b" * 40,
        "goal": serialization.goal_to_json(goal),
        "testbeds": ("guest",),
        "clock": "wall",
        "workload": "pipe-test",
        "workload_sum": "0",
    }
    return Accepted.model_validate({**values, **changes})


def test_the_same_commits_under_other_names_are_the_same_request() -> None:
    renamed = Request(repo="/r", good="main~9", bad="main", workload="pipe-test")
    assert accepted().identity() == accepted(request=renamed).identity()
    assert accepted().identity() == accepted(version="9").identity()


def test_another_commit_workload_or_setting_is_another_request() -> None:
    first = accepted().identity()
    assert accepted(bad="c" * 40).identity() != first
    assert accepted(workload_sum="1").identity() != first
    skipping = Request(repo="/r", good="v1", bad="v2", workload="pipe-test", skip=("x",))
    assert accepted(request=skipping).identity() != first


def test_priors_identify_a_request_by_what_they_say_and_not_by_their_file() -> None:
    named = Request(repo="/r", good="v1", bad="v2", workload="pipe-test", priors="/home/me/priors.toml")
    moved = named.model_copy(update={"priors": "/elsewhere.toml"})
    one, other = (Priors(paths={"mm/": factor}) for factor in (4, 5))
    said = [accepted(request=named, priors=one), accepted(request=moved, priors=one)]
    assert said[0].identity() == said[1].identity()
    assert len({found.identity() for found in (accepted(), said[0], accepted(priors=other))}) == 3


def test_a_request_of_before_there_were_priors_is_the_same() -> None:
    earlier = json.loads(accepted().model_dump_json())
    del earlier["priors"], earlier["request"]["priors"]
    again = Accepted.model_validate_json(json.dumps(earlier))
    assert (again, again.identity()) == (accepted(), "f092d244")


def test_accepted_survives_json() -> None:
    value = accepted(priors=Priors(commits={"c" * 40: 8}, paths={"mm/": 0.5}))
    again = Accepted.model_validate_json(value.model_dump_json())
    assert again == value
    assert again.the_goal().metric.threshold == Threshold(0.05)


@pytest.mark.parametrize("alpha", [0.0, 0.5, -1.0, float("nan")])
def test_alpha_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(ValidationError):
        Request(repo="/r", good="a", bad="b", workload="w", alpha=alpha)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"colour": "blue"})
