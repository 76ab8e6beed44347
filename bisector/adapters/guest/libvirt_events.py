"""libvirt's event loop: one thread of this process."""

from __future__ import annotations

import logging
import threading
import time

try:
    import libvirt
except ImportError:  # see libvirt_connection
    libvirt = None

log = logging.getLogger(__name__)

_events_lock = threading.Lock()
_events_thread: threading.Thread | None = None


def watch_events() -> None:
    """Run libvirt's event loop in a thread, once a process. Without it no end of a domain is reported."""
    global _events_thread
    with _events_lock:
        if _events_thread is not None:
            return
        libvirt.registerErrorHandler(lambda *_: None, None)  # it would print what is raised anyway
        libvirt.virEventRegisterDefaultImpl()
        _events_thread = threading.Thread(target=_run_events, name="libvirt events", daemon=True)
        _events_thread.start()


def _run_events() -> None:
    while True:
        try:
            libvirt.virEventRunDefaultImpl()
        except libvirt.libvirtError as error:
            log.warning("libvirt's event loop: %s", error)
            time.sleep(1.0)
