"""Waiting for processes of which we are not the parent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


def wait_until_gone(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all have ended; returns those that have not after `seconds`.

    One that has ended and that nobody has buried counts as gone: its new parent, in a container often a process that
    buries nobody, may let it lie for seconds or for ever.
    """
    until = time.monotonic() + seconds
    left = list(processes)
    while left := [process for process in left if is_alive(process)]:
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    return left


def is_alive(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
