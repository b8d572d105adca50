"""Waiting that Ctrl-C ends, in whichever thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TypeVar

from ackclock._core import Interrupts

T = TypeVar("T")

PAUSE = 0.05
"""How often signals are looked for, in s."""


class Watch:
    """Tells a thread other than the main one of Ctrl-C: Python raises KeyboardInterrupt in the main one alone."""

    def __init__(self) -> None:
        elsewhere = threading.current_thread() is not threading.main_thread()
        wanted = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._interrupts = Interrupts() if elsewhere and wanted else None

    def check(self) -> None:
        """Raises KeyboardInterrupt if it has come."""
        if self._interrupts is not None and self._interrupts.seen():
            raise KeyboardInterrupt


def patiently(work: Callable[[], T]) -> T:
    """What ``work`` gives or raises. After Ctrl-C it is left to end by itself, with nobody to hear of it."""
    given: list[T] = []
    raised: list[BaseException] = []
    over = threading.Event()

    def do() -> None:
        try:
            given.append(work())
        except BaseException as error:
            raised.append(error)
        finally:
            over.set()

    watch = Watch()
    threading.Thread(target=do, daemon=True).start()
    while not over.wait(PAUSE):
        watch.check()
    if raised:
        raise raised[0]
    return given[0]
