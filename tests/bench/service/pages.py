"""Pages of a real `perfbisect web`: python -m tests.bench.service.pages [BOOTS]

For each page: CPU seconds of the server for the first and for a later look, bytes as sent and compressed
(a proxy compresses them), and seconds until a browser that has nothing of it cached has painted something:
the median of some looks, where there is a chromium.
"""

from __future__ import annotations

import gzip
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx

from tests.support.pages.chromium import CHROMIUM, chromium
from tests.support.servers import served_lab
from tests.support.servers.web import make_tokens, serving

PATHS = (
    "/bisections/done-1",
    "/bisections/running-1",
    "/",
    "/bisections",
    "/queue",
    "/testbeds",
    "/testbeds/machine-a",
    "/compare?a=done-1:v6.1&b=done-1:v6.2",
    "/costs?days=3650",
)
PAINTED = """new Promise((done) => new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (one.name === "first-contentful-paint") done(one.startTime);
}).observe({type: "paint", buffered: true}))"""
LATER = 5
"""Looks after the first one: their mean is printed."""
PAINTS = 5
"""Looks of the browser at each page: beside other work one of them may take several times as long."""


def cpu() -> float:
    """Return the CPU seconds of this process, in which the server runs as a thread."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(arguments: list[str]) -> int:
    """Print a row for each page."""
    boots = int(arguments[0]) if arguments else 200
    with tempfile.TemporaryDirectory() as folder:
        wiring = served_lab.make(Path(folder), boots=boots)
        token = make_tokens(wiring)["read"]
        with (
            serving(wiring) as url,
            httpx.Client(base_url=url, timeout=120) as client,
            browser(token) as first_paint,
        ):
            client.headers["Authorization"] = f"Bearer {token}"
            client.get("/bisections/paused-1")  # what every server has imported after a while
            print(f"{boots} boots\n{'page':40} first s  later s   bytes     gz  paint s")
            for path in PATHS:
                began = cpu()
                page = client.get(path).content
                first = cpu() - began
                began = cpu()
                for _ in range(LATER):
                    client.get(path)
                later = (cpu() - began) / LATER
                paint = first_paint(url + path)
                small = len(gzip.compress(page))
                print(f"{path:40} {first:7.3f}  {later:7.3f} {len(page):7} {small:6} {paint:>8}")
    return 0


@contextmanager
def browser(token: str) -> Iterator[Callable[[str], str]]:
    """Give what returns the seconds until a browser has painted a page; a dash without a browser."""
    if CHROMIUM is None:
        yield lambda url: "-"
        return
    with chromium() as opened:

        def first_paint(url: str) -> str:
            seconds = []
            for _ in range(PAINTS):
                context = opened.new_context(extra_http_headers={"Authorization": f"Bearer {token}"})
                page = context.new_page()
                page.goto(url)
                seconds.append(page.evaluate(PAINTED) / 1000)
                context.close()
            return f"{median(seconds):.2f}"

        yield first_paint


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
