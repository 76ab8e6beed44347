"""`make campaign`: draws faults by a seed, hurts bisections with them, checks what must hold, and counts.

    python -m tests.campaign.run --faults 1000 --seed 16             # on fakes
    python -m tests.campaign.run --faults 100 --seed 16 --guests     # on real guests; needs root
    python -m tests.campaign.run --seed 16 --case 137                # one case again

A campaign that is interrupted goes on with the same command: cases that are in its results are not run again.
The folder of a case that failed is kept.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from pathlib import Path

from tests.campaign import own_machine
from tests.campaign.faults import Case, draw_case
from tests.campaign.invariants import Ended
from tests.campaign.subjects import Subject, on_fakes, on_guests
from tests.campaign.summary import summarise, table
from tests.campaign.supervising import Result, Supervisor

WORK = Path("/tmp/perfbisect-campaign")
_SHOWN_CHARACTERS = 1500
"""Of a violation; the results have all of it."""
_SAID_EVERY = 25
"""Progress is said after so many cases."""


class Campaign:
    """The cases of a seed. work: folder of cases and results."""

    def __init__(self, subject: Subject, seed: int, work: Path) -> None:
        self.subject, self.seed = subject, seed
        name = f"{subject.name}-{seed}"
        self.results, self.summary = work / f"{name}.jsonl", work / f"{name}.json"
        self.supervisor = Supervisor(
            work / name, subject.run_process, subject.start, subject.truths, subject.hang_seconds
        )
        self._expected: list[Ended | None] = []

    def prepare(self) -> None:
        """Run each history without faults, for what the others are compared with, where that can be."""
        for variant in range(len(self.subject.truths)):
            if not self.subject.repeats:
                self._expected.append(None)
                continue
            result, ended = self.supervisor.run(Case(-1 - variant, variant, ()), None)
            if result.violations:
                sys.exit(f"history {variant} without any fault: {result.violations}")
            self._expected.append(ended)

    def case(self, number: int) -> Case:
        """Return a case as the seed draws it."""
        subject = self.subject
        return draw_case(self.seed, number, len(subject.truths), subject.faults, subject.passed)

    def run_case(self, number: int) -> Result:
        """Run a case and keep its result."""
        case = self.case(number)
        result, _ = self.supervisor.run(case, self._expected[case.variant])
        with self.results.open("a") as file:
            file.write(result.json() + "\n")
        return result

    def known(self) -> dict[int, Result]:
        """Return the results so far, by case."""
        lines = self.results.read_text().splitlines() if self.results.exists() else []
        return {result.case: result for result in (Result(**json.loads(line)) for line in lines)}

    def cases_with(self, faults: int) -> list[int]:
        """Return the first cases that together have at least so many faults."""
        drawn, numbers = 0, list[int]()
        while drawn < faults:
            drawn += len(self.case(len(numbers)).faults)
            numbers.append(len(numbers))
        return numbers


def main(arguments: list[str]) -> int:
    """Run a campaign; return 1 if a case has failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=1000, help="so many are drawn")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--guests", action="store_true", help="on real guests instead of fakes")
    parser.add_argument("--case", type=int, help="run this one alone")
    parser.add_argument("--jobs", type=int, default=2, help="bisections at once, on fakes")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of results and failed cases")
    options = parser.parse_args(arguments)
    work: Path = options.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    if options.guests and not own_machine.inside():
        return own_machine.enter(work, arguments)
    campaign = Campaign(on_guests(work) if options.guests else on_fakes(), options.seed, work)
    campaign.prepare()
    if options.case is not None:
        result = campaign.run_case(options.case)
        print(json.dumps(json.loads(result.json()), indent=1))
        return int(bool(result.violations))
    # Guests count instructions, one CPU each: two at once would only take turns.
    return _run_all(campaign, options.faults, 1 if options.guests else options.jobs)


def _run_all(campaign: Campaign, faults: int, jobs: int) -> int:
    wanted, known = campaign.cases_with(faults), campaign.known()
    todo = [number for number in wanted if number not in known]
    print(f"seed {campaign.seed}: {len(wanted)} bisections, {len(wanted) - len(todo)} done", flush=True)
    started = time.monotonic()
    fork = multiprocessing.get_context("fork")
    finished: multiprocessing.SimpleQueue[Result] = fork.SimpleQueue()

    def work(numbers: list[int]) -> None:
        for number in numbers:
            finished.put(campaign.run_case(number))

    workers = [fork.Process(target=work, args=(todo[first::jobs],)) for first in range(jobs)]
    for worker in workers:
        worker.start()
    for count in range(1, len(todo) + 1):
        result = finished.get()
        known[result.case] = result
        _say(campaign, result)
        if result.violations or count % _SAID_EVERY == 0 or count == len(todo):
            left = (time.monotonic() - started) / count * (len(todo) - count)
            failed = sum(bool(r.violations) for r in known.values())
            print(f"{count} of {len(todo)}, {failed} failed, about {left / 60:.0f} min to go", flush=True)
    for worker in workers:
        worker.join()
    results = [known[number] for number in wanted]
    summary = summarise(campaign.seed, results)
    campaign.summary.write_text(json.dumps(summary, indent=1) + "\n")
    print(f"{table(summary)}\n{campaign.summary}")
    return int(summary["failed"] != [])


def _say(campaign: Campaign, result: Result) -> None:
    """Say how a case failed."""
    if not result.violations:
        return
    print(f"case {result.case} of seed {campaign.seed} FAILED: history {result.variant}, {result.codes}")
    for fault in result.faults:
        print(f"    {fault}")
    for violation in result.violations:
        print(f"    * {violation[:_SHOWN_CHARACTERS]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
