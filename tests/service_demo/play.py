"""The service from a nightly series to the mail about its regression, played fast on one machine.

python -m tests.service_demo.play [tiny] [--keep]

tiny: a history of three commits, of which one file each is compiled, and the quiet nights are copies of the
first; else the demo's, one commit a night.
--keep: everything runs on until Ctrl-C, so that its pages can be looked at. Exit code 0: the regression was
found, bisected to the right commit and mailed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.schemas.settings import load_settings
from bisector.series_ports import SeriesStore
from tests.service_demo.histories import BRANCH, History, real, tiny
from tests.service_demo.one_machine import Failed, Service, service
from tests.support import demo_history
from tests.support.servers.mail_server import text_of

SERIES = "nightly"
NIGHT_SECONDS = 1800.0
"""Of one night at most: a first build of a kernel takes some minutes."""
_SCATTER = 2e-4
"""Of a copied boot, relative, at most twice: as boots of one kernel scatter in counted time."""
_ENDED = ("culprit", "not found", "rejected", "undecided")


def play(found: Service, history: History) -> dict[str, Any]:
    """Let nights pass until there is an alert, and follow it to its end; return it. Raises Failed."""
    history.advance(0)
    found.run(
        *("series", "add", SERIES, "--repo", str(history.repo), "--branch", BRANCH, "--boots", "1"),
        *("--workload", "pipe-test", "--testbed", "guest", "--cron", "0 2 * * *", "--budget", "24"),
    )
    copied = range(2, 2 + history.copied)
    for number in range(1, len(history.tips) + 1):
        if number in copied:
            continue
        history.advance(number - 1)
        night = _measure(found, number)
        print(f"night {number:2d}  {night['commit'][:12]}  {_level(night)}  {night['verdict']['status']}")
        if night["verdict"]["status"] == "suspect":
            return _follow(found)
        if number == 1 and copied:
            copy_first_night(series_store(Wiring(load_settings(environment=found.environment))), copied)
            print(f"nights {copied[0]} to {copied[-1]} are copies of it")
    raise Failed("no night was suspect")


def copy_first_night(store: SeriesStore, numbers: Sequence[int]) -> None:
    """Keep nights as if they had measured what the first one did, each boot at a level of its own.

    A worker that looks at one in the middle of this collects it as it is: a copy of the first all the same.
    """
    (first,), points = store.nights(SERIES), store.points(SERIES)
    for number in numbers:
        place = first.place + number * 1e-3  # before the next night, which is due later
        night = replace(first, number=number, place=place, scheduled=place, state="running")
        factor = 1 + _SCATTER * (number % 5 - 2)
        scattered = [
            replace(point, night=number, values=tuple(value * factor for value in point.values))
            for point in points
        ]
        store.add_night(night)
        store.end_night(replace(night, state="measured"), scattered)


def _measure(found: Service, number: int) -> dict[str, Any]:
    """Let a night be measured now, and return it."""
    found.run("series", "run", SERIES)
    found.wait(f"night {number}", lambda: bool(_night(found, number)["verdict"]), NIGHT_SECONDS)
    return _night(found, number)


def _night(found: Service, number: int) -> dict[str, Any]:
    nights = json.loads(found.page(f"/series/{SERIES}.json"))["nights"]
    night: dict[str, Any] = next((n for n in nights if n["number"] == number), {"verdict": None})
    if night.get("state") in ("failed", "missed"):
        raise Failed(f"night {number} {night['state']}: {night['why']}")
    return night


def _level(night: dict[str, Any]) -> str:
    return "not measured" if night["level"] is None else f"{night['level']:.6f} s"


def _follow(found: Service) -> dict[str, Any]:
    """Print what becomes of the alert, and return it when it has ended."""
    told = ""
    deadline = time.monotonic() + NIGHT_SECONDS
    while time.monotonic() < deadline:
        alerts: list[dict[str, Any]] = json.loads(found.page("/alerts.json?show=all"))
        if alerts and alerts[0]["state"] != told:
            told = alerts[0]["state"]
            print(f"alert {alerts[0]['id']}: {told}")
        if told in _ENDED:
            return alerts[0]
        time.sleep(1)
    raise Failed(f"the alert is still '{told}'; the worker says:\n{found.log('worker')}")


def show(found: Service, alert: dict[str, Any], history: History) -> None:
    """Print what people read of it: mail and page. Raises Failed where the culprit is another one."""
    if alert["culprits"] != [history.culprit]:
        raise Failed(f"the culprit is {history.culprit[:12]}, not {alert['culprits'] or alert['state']}")
    bisection = alert["bisection"]
    found.wait("the mail arrives", lambda: bool(found.sink.mails), NIGHT_SECONDS)
    mail = found.sink.mails[-1]
    print(f"--- the mail to {mail['To']} ---\nSubject: {mail['Subject']}\n\n{text_of(mail)}")
    page = f"{found.url}/bisections/{bisection}"
    text = found.page(f"/bisections/{bisection}").decode()
    if history.culprit[:12] not in text:
        raise Failed(f"{page} does not show the culprit")
    print(f"--- the page, {len(text) // 1000} kB: {page} ---")


def main() -> int:
    """Play it; return the exit code."""
    parser = argparse.ArgumentParser(prog="tests.service_demo.play", description=__doc__)
    parser.add_argument("history", nargs="?", choices=("tiny", "real"), default="real")
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGINT is ignored in the background
    os.umask(0o022)
    demo = demo_history.prepare()
    try:
        with tempfile.TemporaryDirectory(prefix="perfbisect-service-") as name:
            folder = Path(name)
            history = (tiny if asked.history == "tiny" else real)(folder, demo)
            with service(folder, history.repo) as found:
                print(f"pages: {found.url}, with the token {found.token}", flush=True)
                show(found, play(found, history), history)
                if asked.keep:
                    print("Ctrl-C ends everything", flush=True)
                    threading.Event().wait()
    except Failed as error:
        print(f"the demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nended")
        return 130 if not asked.keep else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
