"""Sweeps in pieces: on a cluster, into a directory, or both."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

from ackclock import _cluster
from ackclock._core import Batch, Judge, Lines, Scenario
from ackclock._errors import ScenarioWarning
from ackclock._pieces import Asked, Piece, decompress, piece
from ackclock._results import Sweep
from ackclock._store import Store
from ackclock._stored import stored
from ackclock._waiting import PAUSE, Watch

Places = tuple[int, int]
Show = Callable[[float, float], None] | None

_SECONDS = 1.0
"""How long lines of this process gather before they are packed, in s."""
_MOST_LINES = 5000
"""How many of them there are at most."""
_TARGET = 5.0
"""Seconds that a piece of an adaptive sweep takes here."""


def sweep(
    scenario: Scenario,
    asked: Asked,
    client: Any,
    out: str | os.PathLike[str] | None,
    threads: int | None,
    earlier: tuple[bool, bool],
    show: Show,
) -> Sweep:
    """Does the runs that are asked for. ``earlier``: whether to go on with results, or to drop them."""
    total, _ = scenario.places(asked.only, asked.shard)
    judged = asked.only is None and asked.shard is None
    if not judged and scenario.expectations > 0:
        _warn("a part of the runs does not evaluate expectations")
    if out is None:
        with closing(_pieces(scenario, asked, client, threads, [(0, total)])) as pieces:
            return Sweep(_gathered(scenario, pieces, judged, total, show))
    with Store(out, scenario, asked, *earlier) as store:
        with closing(_pieces(scenario, asked, client, threads, store.gaps)) as pieces:
            for found in pieces:
                store.add(found)
                if show is not None:
                    show(*store.reached)
        store.finish()
        return stored(store.folder)


def _warn(note: str) -> None:
    warnings.warn(note, ScenarioWarning, stacklevel=4)


def _pieces(
    scenario: Scenario,
    asked: Asked,
    client: Any,
    threads: int | None,
    gaps: list[Places],
) -> Generator[Piece]:
    """The pieces from wherever; each note is told once."""
    if not gaps:
        return
    told: set[str] = set()
    connected, is_own = (None, False) if client is None else _cluster.connected(client)
    try:
        if connected is None:
            pieces = _here(scenario, asked, threads, gaps)
        else:
            pieces = _cluster.Cluster(connected, scenario, asked, threads).pieces(gaps)
        with closing(pieces):
            for found in pieces:
                for note in found.notes:
                    if note not in told:
                        told.add(note)
                        _warn(note)
                yield found
    finally:
        if connected is not None and is_own:
            connected.close()


def _gathered(scenario: Scenario, pieces: Iterator[Piece], judged: bool, total: int, show: Show) -> Lines:
    """All lines in memory."""
    judge = Judge(scenario)
    parts: dict[int, Lines] = {}
    done = 0
    for found in pieces:
        parts[found.start] = Lines.unpack(decompress(found.lines))
        if found.measures:
            judge.add(found.measures)
        done += found.stop - found.start
        if show is not None:
            show(done, total)
    ordered = [parts[start] for start in sorted(parts)]
    if not judged or scenario.expectations == 0:
        return Lines.join(ordered)
    last = ordered[-1]
    return Lines.join(ordered, judge.conclude(last.json(len(last) - 1)))


def _here(scenario: Scenario, asked: Asked, threads: int | None, gaps: list[Places]) -> Generator[Piece]:
    """The pieces of this process."""
    planned, note = scenario.plan(os.cpu_count() or 1) if threads is None else (threads, None)
    notes = [note] if note else []
    for gap in gaps:
        # The runs of a point decide how many of its places have one.
        pieces = _points if scenario.is_adaptive and asked.only is None else _taken
        for found in pieces(scenario, asked, planned, gap):
            yield found._replace(notes=[*notes, *found.notes])


def _taken(scenario: Scenario, asked: Asked, threads: int | None, gap: Places) -> Generator[Piece]:
    """Lines as they come from one batch, a run for each place."""
    at = gap[0]
    batch = Batch.start(
        scenario,
        only=asked.only,
        shard=asked.shard,
        places=gap,
        threads=threads,
        records=asked.records,
        most=_MOST_LINES,
    )
    watch = Watch()
    since = time.monotonic()
    try:
        over = False
        while not over:
            over = batch.wait(PAUSE)
            watch.check()
            if not over and time.monotonic() - since < _SECONDS and batch.waiting() < _MOST_LINES:
                continue
            lines, notes = batch.finish() if over else (batch.take(), [])
            took, since = time.monotonic() - since, time.monotonic()
            if len(lines) > 0:
                yield piece(scenario, asked, (at, at + len(lines)), lines, took, notes)
                at += len(lines)
    finally:
        batch.stop()


def _points(scenario: Scenario, asked: Asked, threads: int | None, gap: Places) -> Generator[Piece]:
    """Batches of some points each."""
    block = scenario.places(asked.only, asked.shard)[1]
    watch = Watch()
    at, points = gap[0], 2 * (threads or 1)
    while at < gap[1]:
        places = at, min(at + points * block, gap[1])
        began = time.monotonic()
        batch = Batch.start(
            scenario, only=asked.only, shard=asked.shard, places=places, threads=threads, records=asked.records
        )
        try:
            while not batch.wait(PAUSE):
                watch.check()
            lines, notes = batch.finish()
        finally:
            batch.stop()
        took = time.monotonic() - began
        yield piece(scenario, asked, places, lines, took, notes)
        points = max(2 * (threads or 1), int(points * min(4.0, _TARGET / max(took, 1e-3))))
        at = places[1]
