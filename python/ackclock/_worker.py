"""What workers of a cluster do: pieces of a sweep, each on one thread.

A worker does as many at the same time as it has threads for tasks, so that the scheduler's books are
right. The scenario comes once to each worker and is read once in each process.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
from collections import OrderedDict
from typing import Any, NamedTuple

import ackclock
from ackclock._core import Batch, Own, Scenario, __build__
from ackclock._errors import RunError
from ackclock._pieces import Asked, Piece, piece

PROTOCOL = 1
"""Raised when client and workers of this version cannot work with those of the last one."""

_LOOKS = 0.2
"""How often it is looked whether a piece is still wanted, in s."""
_KEPT = 4
"""Scenarios that a process keeps."""


class Version(NamedTuple):
    """What has to be the same on all machines."""

    version: str
    build: str
    protocol: int

    def __str__(self) -> str:
        return f"{self.version} (build {self.build}, protocol {self.protocol})"


VERSION = Version(ackclock.__version__, __build__, PROTOCOL)

PROBE = "tuple(__import__('ackclock._worker', fromlist=['VERSION']).VERSION)"
"""Evaluated by workers: it names nothing that an older version may lack, but what then is an error."""


class Stopped(Exception):
    """A piece that nobody wants any more."""


class Parcel(NamedTuple):
    """A scenario with all that it needs, on its way."""

    data: bytes
    digest: str

    @staticmethod
    def of(scenario: Scenario) -> Parcel:
        dumps: Any = pickle.dumps
        classes = scenario.classes
        if classes is not None:
            # Knows classes of `__main__` as well.
            import cloudpickle

            dumps = cloudpickle.dumps
        data = dumps((scenario.pack(), classes))
        return Parcel(data, hashlib.sha256(data).hexdigest())


class _Loaded:
    def __init__(self, data: bytes) -> None:
        parts, classes = pickle.loads(data)
        arguments: Any = (*parts, None if classes is None else Own(*classes))
        self.scenario = Scenario.unpack(*arguments)
        self._lock = threading.Lock()
        self._slots: dict[int, tuple[threading.Semaphore, str | None]] = {}

    def slots(self, threads: int, memory: int | None) -> tuple[threading.Semaphore, str | None]:
        """How many runs go on at the same time in this process, with a note if they may not fit."""
        with self._lock:
            if threads not in self._slots:
                fitting, note = self.scenario.plan(threads, memory)
                self._slots[threads] = (threading.Semaphore(fitting), note)
            return self._slots[threads]


_loaded: OrderedDict[str, _Loaded] = OrderedDict()
_loading = threading.Lock()


def _load(data: bytes, digest: str) -> _Loaded:
    with _loading:
        found = _loaded.get(digest)
        if found is None:
            found = _loaded[digest] = _Loaded(data)
            while len(_loaded) > _KEPT:
                _loaded.popitem(last=False)
        _loaded.move_to_end(digest)
        return found


def carry(data: bytes) -> bytes:
    """Gives what it was given. As the result of a task it goes from worker to worker, and is there again
    after all who had it are lost."""
    return data


def work(data: bytes, digest: str, version: Version, asked: Asked, threads: int | None, start: int, stop: int) -> Piece:
    """Does the runs at some places. Raises RunError on a worker of another version."""
    import distributed

    worker = distributed.get_worker()
    if tuple(version) != tuple(VERSION):
        raise RunError(mismatch({worker.address: str(VERSION)}, version))
    loaded = _load(data, digest)
    most = worker.state.nthreads if threads is None else min(threads, worker.state.nthreads)
    slots, note = loaded.slots(most, worker.memory_manager.memory_limit or None)
    key = worker.get_current_task()
    while not slots.acquire(timeout=_LOOKS):
        _look(worker, key)
    try:
        return _runs(loaded.scenario, asked, (start, stop), worker, key, [note] if note else [])
    finally:
        slots.release()


def _runs(scenario: Scenario, asked: Asked, places: tuple[int, int], worker: Any, key: Any, notes: list[str]) -> Piece:
    began = time.perf_counter()
    batch = Batch.start(scenario, only=asked.only, shard=asked.shard, places=places, threads=1, records=asked.records)
    try:
        while not batch.wait(_LOOKS):
            _look(worker, key)
        lines, said = batch.finish()
    finally:
        batch.stop()
    took = time.perf_counter() - began
    return piece(scenario, asked, places, lines, took, notes + said)


def _look(worker: Any, key: Any) -> None:
    """Raises Stopped if the task was cancelled, or its client has left."""
    task = worker.state.tasks.get(key)
    if task is None or task.state != "executing":
        raise Stopped(f"{key} is not wanted any more")


def mismatch(found: dict[str, str], version: Version) -> str:
    """What to say of workers of other versions."""
    others = "; ".join(f"worker {address} has {other}" for address, other in sorted(found.items()))
    return f"ackclock must be the same everywhere: here it is {version}; {others}. Install the same wheel on all"
