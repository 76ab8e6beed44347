"""`make campaign LAB=1`: faults drawn by a seed strike searches on two emulated machines.

    python -m tests.lab.campaign.run --faults 20 --seed 1

Each case is a search of two kernels, hurt by several faults, one after another, and resumed until it ends. It
needs root; the kernels are Debian's. The folder of a failed case is kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

from tests.lab.campaign.case import HurtSearch, Result
from tests.lab.campaign.faults import MOMENTS, draw
from tests.lab.listed_kernels import KernelList, sound_list
from tests.lab.machines import Machines

WORK = Path("/tmp/perfbisect-lab-campaign")
_FAULTS_IN_A_CASE = 5
"""A search has eighteen boots, a fault costs one to three, and the next one waits for a run in peace: of ten
faults the last found the search at its end."""

_BOOT_SECONDS = 20.0
"""Of a boot at least, for the limit of others: 8 by itself, and eight times that was missed where a guest and
compilers shared two CPUs with both machines."""

_KERNELS, _CULPRIT = 3, 1
"""Two candidates, of which the first is the culprit: eighteen boots undisturbed."""


def run_case(number: int, seed: int, size: int, work: Path, lab: Machines, search: KernelList) -> Result:
    """Run one case on machines that are well."""
    folder = work / f"case-{seed}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    for machine in lab.machines:
        machine.put_back()
        machine.boot_seconds = max(machine.boot_seconds, _BOOT_SECONDS)
    print(f"case {number}: " + "; ".join(str(fault) for fault in draw(seed, number, size)), flush=True)
    result = HurtSearch(number, folder, lab.machines, search, _CULPRIT).run(draw(seed, number, size))
    if len(result.struck) < size:
        result.violations.append(
            f"{size - len(result.struck)} of {size} faults never struck: they show nothing"
        )
    print(
        f"case {number}: {len(result.struck)} of {size} struck, {result.boots} boots, codes {result.codes}, "
        f"{result.seconds:.0f} s, {'FAILED' if result.violations else 'all holds'}",
        flush=True,
    )
    for violation in result.violations:
        print(f"    * {violation[:1500]}", flush=True)
    if not result.violations:
        shutil.rmtree(folder)
    return result


def main(arguments: list[str]) -> int:
    """Run a campaign; return 1 if a case has failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=20, help="so many are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="run this one alone")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of results and failed cases")
    options = parser.parse_args(arguments)
    work: Path = options.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    kernels = work / "kernels"
    shutil.rmtree(kernels, ignore_errors=True)
    search = sound_list(kernels, _KERNELS, _CULPRIT)
    size = min(_FAULTS_IN_A_CASE, options.faults)
    numbers = range(-(-options.faults // size)) if options.case is None else [options.case]
    results = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # machines end, and leave nothing
    with Machines({"kexec-ipmi": "ipmi", "grub-redfish": "redfish"}) as lab:
        for number in numbers:
            results.append(run_case(number, options.seed, size, work, lab, search))
            with (work / f"seed-{options.seed}.jsonl").open("a") as file:
                file.write(results[-1].json() + "\n")
    texts = [text for result in results for text in result.struck]
    struck = Counter(kind for kind in MOMENTS for text in texts if f": {kind} at " in text)
    print(json.dumps(struck, indent=1))
    failed = [result.case for result in results if result.violations]
    print(
        f"{sum(struck.values())} faults struck in {len(results)} searches; failed cases: {failed or 'none'}"
    )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
