"""A limit for a whole answer: a peer that sends a byte now and then ends none of the socket's own."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

ANSWER_SECONDS = 60.0
"""Timeout of one answer. RFC 5321, 4.5.3.2 allows minutes, for long lists; a relay answers in seconds."""
DELIVERY_SECONDS = 300.0
"""Timeout of all that is said before the text: a third of the time after which a message counts as unsure."""


@contextlib.contextmanager
def time_limit(get_socket: Callable[[], socket.socket | None], seconds: float) -> Iterator[None]:
    """Cut off a connection after so long. Raises TimeoutError for whatever the block raises then."""
    late = threading.Event()

    def cut() -> None:
        late.set()
        found = get_socket()
        if found is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(found, socket.SHUT_RDWR)  # of TLS as well: without a farewell

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise TimeoutError(f"no whole answer within {seconds:g} s") from error
        raise
    finally:
        timer.cancel()
