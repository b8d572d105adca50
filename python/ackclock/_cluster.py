"""Sweeps on the workers of a Dask cluster.

The scheduler holds some hundred tasks at a time, each of some 2 s: pieces of the sweep are cut when
their turn comes, by the time that earlier ones took.
"""

from __future__ import annotations

import importlib
import math
import queue
import time
import uuid
import warnings
from collections import deque
from collections.abc import Generator, Iterator
from typing import Any

from ackclock._core import Lines, Scenario
from ackclock._errors import RunError, ScenarioError, ScenarioWarning
from ackclock._pieces import Asked, Piece, arrow, piece
from ackclock._waiting import PAUSE, Watch
from ackclock._worker import PROBE, VERSION, Parcel, Stopped, carry, mismatch, work

Places = tuple[int, int]
Future = Any
"""Of distributed, whose types are half there."""

_TARGET = 2.0
"""Seconds that a task should take."""
_LEAST = 0.2
"""The same of those at the end, which are shared out evenly."""
_MOST_RUNS = 5000
_MOST_BYTES = 64 << 20
"""Of a task at most: its results are in memory at once."""
_PARTS = 64
"""Into how many a task is cut whose workers were lost."""
_LOOKS = 2.0
"""How often workers are counted, in s."""
_PATIENCE = 30.0
"""After how long without workers that is said, in s."""
_LOST = 10
"""How often a task may be lost without a reason before that is an error."""


def connected(client: Any) -> tuple[Any, bool]:
    """The client, and whether it was made here from an address.

    Raises ImportError without distributed, TypeError for anything else than a client that waits or an
    address, OSError if there is no scheduler.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise ImportError("a cluster needs Dask: pip install distributed pyarrow") from error
    arrow()
    if isinstance(client, str):
        return distributed.Client(client), True
    if not isinstance(client, distributed.Client):
        expected = "a distributed.Client, or the address of a scheduler"
        raise TypeError(f"client: found {client!r}, expected {expected}")
    if client.asynchronous:
        raise TypeError("client: it is asynchronous, expected one that waits: Client(..., asynchronous=False)")
    return client, False


class Cluster:
    """A sweep on the workers of a client."""

    def __init__(self, client: Any, scenario: Scenario, asked: Asked, threads: int | None) -> None:
        if threads is not None and threads < 1:
            raise ValueError("threads: expected at least 1, or None for as many as workers have")
        if scenario.is_replay:
            raise RunError("a replay reads its capture from the working directory: it runs without `client`")
        self._client = client
        self._scenario = scenario
        self._asked = asked
        self._threads = threads
        self._parcel = Parcel.of(scenario)
        self._name = f"ackclock-{uuid.uuid4().hex[:12]}"
        self._block = scenario.places(asked.only, asked.shard)[1]
        # Places that are left; tasks whose workers were lost; runs that are to be alone with their worker.
        self._left: deque[Places] = deque()
        self._suspects: deque[Places] = deque()
        self._alone: deque[Places] = deque()
        self._flying: dict[Future, tuple[Places, bool]] = {}
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._number = 0
        self._lost = 0
        # What a block of runs that stay together takes, in s and in bytes of results.
        self._per_block: float | None = None
        self._bytes = 1.0
        self._workers: dict[str, int] = {}
        self._looked = -math.inf
        self._missed: float | None = None

    def pieces(self, gaps: list[Places]) -> Generator[Piece]:
        """Does the runs at all these places. Pieces come as they are ready, in any order.

        Raises RunError and ScenarioError as one machine does, and RunError for workers of another version,
        or if the scheduler is lost. However it ends, nothing goes on afterwards.
        """
        self._left.extend(gaps)
        self._check_versions()
        watch = Watch()
        data = self._client.submit(carry, self._parcel.data, key=(f"{self._name}-scenario", 0), pure=False)
        try:
            while self._left or self._suspects or self._alone or self._flying:
                self._look()
                self._submit(data)
                ready = self._ready()
                watch.check()
                yield from self._results(ready)
        finally:
            self._cancel(data)

    def _check_versions(self) -> None:
        answers = self._client.run(eval, PROBE, on_error="return")
        others = {}
        for address, answer in answers.items():
            if isinstance(answer, BaseException):
                others[address] = f"another version, or none ({type(answer).__name__}: {answer})"
            elif tuple(answer) != tuple(VERSION):
                others[address] = " / ".join(map(str, answer))
        if others:
            raise RunError(mismatch(others, VERSION))

    def _look(self) -> None:
        """Counts the workers now and then."""
        now = time.monotonic()
        if now - self._looked < _LOOKS:
            return
        self._looked = now
        if self._client.status not in ("running", "connecting"):
            raise RunError("the connection to the scheduler was lost")
        self._workers = dict(self._client.nthreads())
        if self._workers:
            self._missed = None
        elif self._missed is None:
            self._missed = now
        elif 0 <= now - self._missed - _PATIENCE < _LOOKS:
            warnings.warn("the cluster has no workers: waiting for some", ScenarioWarning, stacklevel=2)

    def _slots(self) -> int:
        most = self._threads or math.inf
        return int(sum(min(threads, most) for threads in self._workers.values()))

    def _most(self) -> int:
        """How many tasks the scheduler may hold: enough that an adaptive cluster sees the work."""
        slots = self._slots()
        if self._per_block is None and slots > 0:
            # What these take says how large others are.
            return 2 * slots
        return max(8, 4 * slots, min(16 * slots, 256))

    def _submit(self, data: Future) -> None:
        while len(self._flying) < self._most():
            if self._left:
                self._send(data, self._cut())
            elif self._suspects:
                self._send(data, self._suspects.popleft())
            elif self._alone and not self._flying:
                # A worker that is lost now is lost by this run.
                self._send(data, self._alone.popleft(), alone=True)
            else:
                return

    def _cut(self) -> Places:
        start, stop = self._left[0]
        blocks = 1
        if self._per_block is not None:
            per_second = 1 / max(self._per_block, 1e-6)
            left = sum(b - a for a, b in self._left) // self._block
            share = max(left // (3 * max(self._slots(), 1)), int(_LEAST * per_second))
            most = min(share, _MOST_RUNS // self._block, int(_MOST_BYTES / self._bytes))
            blocks = max(1, min(int(_TARGET * per_second), most))
        cut = min(stop, start + blocks * self._block)
        if cut == stop:
            self._left.popleft()
        else:
            self._left[0] = (cut, stop)
        return start, cut

    def _send(self, data: Future, places: Places, alone: bool = False) -> None:
        self._number += 1
        # Tasks whose keys begin alike are one group to the scheduler, which hands them out one by one.
        key = (self._name, self._number)
        arguments = (data, self._parcel.digest, VERSION, self._asked, self._threads)
        future = self._client.submit(work, *arguments, *places, key=key, pure=False)
        self._flying[future] = places, alone
        future.add_done_callback(self._ended.put)

    def _ready(self) -> list[Future]:
        """The tasks that have ended; waits for one a moment."""
        ready: list[Future] = []
        try:
            ready.append(self._ended.get(timeout=PAUSE))
            while True:
                ready.append(self._ended.get_nowait())
        except queue.Empty:
            return ready

    def _results(self, ready: list[Future]) -> Iterator[Piece]:
        ready = [future for future in ready if future in self._flying]
        done = [future for future in ready if future.status == "finished"]
        # Those that are lost on their way are not in it, and not done any more.
        found = dict(zip([future.key for future in done], self._gather(done), strict=True))
        for future in ready:
            places, alone = self._flying.pop(future)
            result = found.get(future.key)
            if isinstance(result, Piece):
                self._learn(result)
                yield result
            elif future.status == "error":
                yield from self._failed(future.exception(), places, alone)
            else:
                self._again(places, "lost")
            future.release()

    def _gather(self, futures: list[Future]) -> list[Any]:
        if not futures:
            return []
        try:
            return list(self._client.gather(futures, errors="raise"))
        except Exception:
            return [self._one(future) for future in futures]

    def _one(self, future: Future) -> Any:
        try:
            return future.result()
        except Exception:
            return None

    def _learn(self, found: Piece) -> None:
        self._lost = 0
        blocks = max(1, (found.stop - found.start) // self._block)
        self._bytes = max(1.0, found.size / blocks)
        per_block, known = found.took / blocks, self._per_block
        self._per_block = per_block if known is None else 0.7 * known + 0.3 * per_block

    def _again(self, places: Places, why: str) -> None:
        self._lost += 1
        if self._client.status not in ("running", "connecting") or self._lost > _LOST * self._most():
            raise RunError(f"the connection to the scheduler was lost, or it loses results: {why}")
        self._left.appendleft(places)

    def _failed(self, error: BaseException | None, places: Places, alone: bool) -> Iterator[Piece]:
        """What to do about a task that failed."""
        from distributed.scheduler import KilledWorker

        if isinstance(error, (ScenarioError, RunError)):
            raise error
        if isinstance(error, KilledWorker):
            yield from self._killed(error, places, alone)
        elif isinstance(error, Stopped):
            self._again(places, str(error))
        elif isinstance(error, (ImportError, AttributeError)):
            text = f"ackclock must be the same everywhere: here it is {VERSION}, and a worker has another ({error})"
            raise RunError(text) from error
        else:
            runs = f"the runs at places {places[0]} to {places[1] - 1}"
            raise RunError(f"{runs} failed on a worker: {type(error).__name__}: {error}") from error

    def _killed(self, error: Any, places: Places, alone: bool) -> Iterator[Piece]:
        """Workers were lost with this task several times: it is searched for the run that does it."""
        start, stop = places
        blocks = (stop - start) // self._block
        if alone:
            why = f"the workers that did it were lost, {error.allowed_failures + 1} times; the last one was "
            yield self._given_up(places, why + f"{error.last_worker.address}: out of memory?")
        elif blocks <= 1:
            self._alone.append(places)
        else:
            step = max(1, blocks // _PARTS) * self._block
            parts = [(at, min(at + step, stop)) for at in range(start, stop, step)]
            (self._alone if step == self._block else self._suspects).extend(parts)

    def _given_up(self, places: Places, why: str) -> Piece:
        runs = self._scenario.runs_at(*places, only=self._asked.only, shard=self._asked.shard)
        lines = Lines.join([self._scenario.failure(run, why) for run in runs])
        return piece(self._scenario, self._asked, places, lines, 0.0, [])

    def _cancel(self, data: Future) -> None:
        """Ends what goes on: workers look whether their tasks are still wanted."""
        futures = [*self._flying, data]
        self._flying.clear()
        if self._client.status == "running":
            self._client.cancel(futures, force=True)
        for future in futures:
            future.release()
