"""`python -m tests.lab.up`: emulated machines to try things on, until Ctrl-C."""

from __future__ import annotations

import argparse
import code
import signal
import time

from tests.lab.machine_design import DESIGNS
from tests.lab.machines import Machines, write_inventory


def main() -> None:
    """Start the machines, print their inventory, keep them."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.up", description=__doc__)
    parser.add_argument(
        *("machines",),
        nargs="*",
        default=["box1=ipmi"],
        metavar="NAME=KIND",
        help=f"machines to start (default: box1=ipmi); kinds: {', '.join(DESIGNS)}",
    )
    parser.add_argument(
        "--python", action="store_true", help="go on in Python: box1.hang(), box1.bmc.kill(), ..."
    )
    asked = parser.parse_args()
    kinds = {name: kind or "ipmi" for name, _, kind in (one.partition("=") for one in asked.machines)}
    if not set(kinds.values()) <= set(DESIGNS):
        parser.error(f"kinds are {', '.join(DESIGNS)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Machines(kinds) as lab:
            started = time.monotonic()
            lab.start()
            path = write_inventory(lab.machines, lab.folder / "lab.yml")
            print(f"{path.read_text()}\n# {path}", flush=True)
            for machine in lab.machines:
                machine.wait_for_ssh()
                seconds = time.monotonic() - started
                print(
                    f"# {machine.name}: SSH after {seconds:.0f} s, {machine.cpu_seconds():.0f} s of CPU; "
                    f"ssh -i {machine.base.key} -p {machine.ssh_port} "
                    f"-o UserKnownHostsFile={machine.folder}/known_hosts root@127.0.0.1",
                    flush=True,
                )
            print("# Ctrl-C ends them", flush=True)
            if asked.python:
                code.interact(banner="", local={machine.name: machine for machine in lab.machines})
            else:
                signal.pause()
    except KeyboardInterrupt:
        print("# ended")


if __name__ == "__main__":
    main()
