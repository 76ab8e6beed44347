"""Chores: what executors look after beside measuring, such as nights that are due and mail that waits.

Several executors have the same chores at the same time: whatever a chore does, the database must let it
happen once (compare-and-set, or a lease).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bisector.errors import Interrupted, PerfbisectError

CHORES = "chores"
"""Stands for the bisection's id in events about chores; real ids contain a '-'."""
_END_SECONDS = 10.0
"""How long an executor that ends waits for a chore under way; the next executor does the rest."""


@dataclass(frozen=True, slots=True)
class Chore:
    """name: what messages call it; seconds: from one call to the next, at most; do: does what is due now.

    `do` is called by one thread of this process at a time. What it raises is told, and it is called again.
    """

    name: str
    seconds: float
    do: Callable[[], object]


class Chores:
    """The chores of one executor, each in a thread of its own so none waits for another; started once."""

    def __init__(self, chores: Sequence[Chore], tell: Callable[[str], object]) -> None:
        """tell: called with each failure once, until the chore works again or fails in another way."""
        self._tell = tell
        self._chores = [(chore, threading.Lock()) for chore in chores]
        self._wrong: dict[str, str] = {}  # chore -> what was told
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._soon = [threading.Event() for _ in self._chores]

    def do_all(self) -> None:
        """Do whatever is due now, in this thread. Raises nothing."""
        for chore, turn in self._chores:
            self._do(chore, turn)

    def hurry(self) -> None:
        """Have all of them done at once: something has happened that one of them may wait for."""
        for soon in self._soon:
            soon.set()

    def start(self) -> None:
        """Do them now and then from now on, each in a thread of its own."""
        for (chore, turn), soon in zip(self._chores, self._soon, strict=True):
            arguments, name = (chore, turn, soon), f"chore-{chore.name}"
            self._threads.append(
                threading.Thread(target=self._repeat, args=arguments, daemon=True, name=name)
            )
            self._threads[-1].start()

    def end(self) -> None:
        """Begin no chore any more, and give those under way some time to end."""
        self._ended.set()
        self.hurry()
        for thread in self._threads:
            thread.join(_END_SECONDS)

    def _repeat(self, chore: Chore, turn: threading.Lock, soon: threading.Event) -> None:
        while not self._ended.is_set():
            soon.clear()
            self._do(chore, turn)
            soon.wait(chore.seconds)

    def _do(self, chore: Chore, turn: threading.Lock) -> None:
        wrong = ""
        try:
            with turn:
                chore.do()
        except Interrupted:
            return
        except PerfbisectError as error:
            wrong = "\n".join(filter(None, (error.message, error.details)))
        except Exception as error:  # an error of ours must not end what measures
            wrong = f"{type(error).__name__}: {error}"
        if wrong != self._wrong.get(chore.name, ""):
            self._wrong[chore.name] = wrong
            self._tell(f"{chore.name}: {wrong or 'works again'}")
