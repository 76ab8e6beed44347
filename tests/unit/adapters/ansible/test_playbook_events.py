"""What the end of a playbook means."""

from pathlib import Path

import pytest

from bisector.adapters.ansible.playbook_events import Events, Played, judge
from bisector.errors import InfrastructureError


@pytest.mark.parametrize(("log", "told"), [("ERROR! no such role\n", "no such role"), (None, "left no log")])
def test_a_playbook_that_could_not_be_run_is_broken_infrastructure(
    tmp_path: Path, log: str | None, told: str
) -> None:
    """Also where somebody emptied the cache folder meanwhile, its log with it."""
    events = Events("build.yml", tmp_path / "build.log", lambda _: None, None)
    events.close()
    if log is None:
        (tmp_path / "build.log").unlink()
    else:
        (tmp_path / "build.log").write_text(log)
    with pytest.raises(InfrastructureError, match="could not be run") as raised:
        judge(Played("build.yml", (), 1.0, tmp_path / "build.log"), 250, events, check=True)
    assert told in raised.value.details
