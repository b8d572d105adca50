"""Runs: what is asked of the compiled part, waiting, interrupts, progress."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ackclock import _sweeping, _toml
from ackclock._core import Batch, Lines, Own, Scenario
from ackclock._errors import ScenarioWarning
from ackclock._own import Controllers, Queues, own
from ackclock._pieces import Asked
from ackclock._results import Result, Sweep
from ackclock._waiting import PAUSE, Watch, patiently

if TYPE_CHECKING:
    from distributed import Client

Source = str | os.PathLike[str] | Mapping[str, Any] | Scenario
"""A scenario: a file, a dict as TOML would be, or what :func:`load` gave."""
Set = Mapping[str, Any] | Iterable[str] | None
"""Overrides: ``{"links.a.delay": "40ms"}``, or texts as on the command line."""
Record = Mapping[str, Any] | Iterable[str] | Literal[False] | None
"""What is recorded: names, or keys of ``[record]`` with their values; False for nothing at all."""

_PLAIN: dict[str, Any] = {
    "series": "100ms",
    "queue": True,
    "tcp": True,
    "qlog": True,
    "siftr": True,
    "ertt": True,
    "flows": True,
    "displacement": True,
}


def load(
    scenario: Source,
    *,
    set: Set = None,
    seed: int | None = None,
    record: Record = None,
    points: Iterable[Mapping[str, Any]] | None = None,
    repeat: int | None = None,
    controllers: Controllers = None,
    queues: Queues = None,
) -> Scenario:
    """Reads and checks a scenario, and runs nothing.

    The arguments are those of :func:`run` and :func:`sweep`.

    Raises ScenarioError if anything is wrong with it, FileNotFoundError or another OSError if the
    file cannot be read, TypeError for a value that TOML cannot hold.
    """
    overrides = _toml.overrides(set)
    if seed is not None:
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise TypeError(f"seed: found {seed!r}, expected a whole number")
        overrides.append(("seed", f"run.seed={seed.__index__()}"))
    overrides += _recorded(record)
    if repeat is not None:
        overrides.append(("repeat", f"sweep.repeat={_toml.value(repeat, 'repeat')}"))
    # A generator is not carried off to another thread.
    listed = None if points is None else list(points)
    classes = own(controllers, queues)
    if isinstance(scenario, Scenario):
        if overrides or listed is not None or classes is not None:
            raise TypeError("a scenario that was loaded takes no overrides or classes: give them to ackclock.load")
        return scenario
    return patiently(lambda: _read(scenario, overrides, listed, classes))


def _read(
    scenario: str | os.PathLike[str] | Mapping[str, Any],
    overrides: list[tuple[str, str]],
    points: list[Mapping[str, Any]] | None,
    classes: Own | None,
) -> Scenario:
    if points is not None:
        overrides.append(("points", f"sweep.points={_toml.value(points, 'points')}"))
    if isinstance(scenario, Mapping):
        return Scenario("<dict>", _toml.document(scenario), overrides, classes)
    return Scenario(os.fspath(scenario), None, overrides, classes)


def _recorded(record: Record) -> list[tuple[str, str]]:
    if record is None or record is False:
        return []
    if isinstance(record, str):
        raise TypeError(f"record: found a string, expected a list such as [{record!r}]")
    if not isinstance(record, Mapping):
        names = list(record)
        unknown = [name for name in names if name not in _PLAIN]
        if unknown:
            known = ", ".join(_PLAIN)
            raise ValueError(
                f"record: {unknown[0]!r} is not one of {known}; others take values: record={{'pcap': ['reno.0']}}"
            )
        record = {name: _PLAIN[name] for name in names}
    return _toml.overrides({f"record.{name}": value for name, value in record.items()}, "record")


def run(
    scenario: Source,
    *,
    set: Set = None,
    seed: int | None = None,
    record: Record = None,
    progress: bool = False,
    controllers: Controllers = None,
    queues: Queues = None,
) -> Result:
    """Runs a scenario once, on the virtual clock or as a replay.

    ``scenario`` is a file, or a dict as TOML would be, in which files are relative to the current
    directory. ``set`` overrides keys: ``{"links.bottleneck.delay": "40ms", "flows.*.cc": "cubic"}``,
    or texts as the command line has them: ``["flows.reno.cc=cubic"]``. ``seed`` overrides
    ``run.seed``. ``record`` asks for records, into memory: names (``["series", "queue"]``; a series
    has intervals of 100 ms) or values (``{"series": "10ms"}``), beside those of the scenario's own
    ``[record]``; ``False`` records nothing, whatever the scenario asks for. ``progress`` shows a bar,
    if tqdm is installed.

    Other threads of Python go on meanwhile. Ctrl-C raises KeyboardInterrupt.

    Raises ScenarioError if anything is wrong with the scenario, OSError if it cannot be read,
    ValueError if it is a sweep, RunError if the run fails or needs the machine's clock; if a hook has
    raised an exception, that is its ``__cause__``.
    Expectations that were missed are in the result.
    """
    loaded = load(scenario, set=set, seed=seed, record=record, controllers=controllers, queues=queues)
    if loaded.runs != 1:
        raise ValueError(f"the scenario has {loaded.runs} runs: use ackclock.sweep")
    lines = _execute(loaded, record is not False, None, None, 1, progress)
    return Result(lines)


def sweep(
    scenario: Source,
    *,
    set: Set = None,
    seed: int | None = None,
    record: Record = None,
    points: Iterable[Mapping[str, Any]] | None = None,
    repeat: int | None = None,
    only: str | None = None,
    shard: str | None = None,
    threads: int | None = None,
    progress: bool = True,
    controllers: Controllers = None,
    queues: Queues = None,
    client: Client | str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    overwrite: bool = False,
) -> Sweep:
    """Does all runs of a sweep, on all cores, or on the workers of a Dask cluster.

    ``points`` are points of the sweep: dicts with the same paths and a value for each,
    ``({"links.a.delay": f"{ms}ms"} for ms in range(1, 100_000))``. If the scenario has axes as
    well, each point is combined with all their values. ``repeat`` sets how often each point is run.
    ``only`` and ``shard`` do a part of the runs, as ``--only`` and ``--shard`` have it: ``"0-9"``,
    ``"3:0"``, ``"0/16"``; expectations are not evaluated then. ``threads`` is how many runs go on
    at the same time: as many as there are cores unless set, but one with classes of Python, whose
    hooks take turns; results do not depend on it. The other arguments are those of :func:`run`.

    Runs that fail do not end the sweep: ``sweep.failed`` counts them, and the columns ``failed``
    and ``error`` of ``sweep.runs`` tell them. Of more than 10,000 points some are read in advance,
    the others when their turn comes. The lines of all runs are kept in memory, some 4 kB each with two
    flows, and so are their records.

    With ``client``, a ``distributed.Client`` or the address of a scheduler, the workers of that cluster do
    the runs; results are the same bytes. ``threads`` is how many go on at the same time in each worker
    process then. docs/clusters.md describes clusters, and what happens if workers are lost.

    With ``out``, results are written into that directory as they come, as ``ackclock FILE --out`` does, and
    read again when they are asked for (:class:`StoredSweep`). A sweep that was broken off continues where
    it was; ``resume=False`` refuses a directory with results, ``overwrite=True`` drops them.

    Raises what :func:`run` raises, but for a sweep; RunError if the runs do not fit into memory, a worker
    has another version of ackclock, or the scheduler is lost; FileExistsError if ``out`` holds anything
    else than results of this sweep, BlockingIOError if another process writes there.
    """
    loaded = load(
        scenario,
        set=set,
        seed=seed,
        record=record,
        points=points,
        repeat=repeat,
        controllers=controllers,
        queues=queues,
    )
    asked = Asked(only, shard, record is not False)
    if client is None and out is None:
        return Sweep(_execute(loaded, asked.records, only, shard, threads, progress))
    for note in loaded.notes:
        warnings.warn(note, ScenarioWarning, stacklevel=2)
    bar = _Bar(loaded.title) if progress else None
    try:
        return _sweeping.sweep(loaded, asked, client, out, threads, (resume, overwrite), bar.show if bar else None)
    finally:
        if bar is not None:
            bar.close()


def _execute(
    scenario: Scenario, records: bool, only: str | None, shard: str | None, threads: int | None, progress: bool
) -> Lines:
    for note in scenario.notes:
        warnings.warn(note, ScenarioWarning, stacklevel=3)
    batch = Batch.start(scenario, only=only, shard=shard, threads=threads, records=records)
    bar = _Bar(scenario.title) if progress else None
    watch = Watch()
    try:
        while not batch.wait(PAUSE):
            if bar is not None:
                bar.move(batch)
            watch.check()
        lines, notes = batch.finish()
        if bar is not None:
            bar.move(batch)
    finally:
        batch.stop()
        if bar is not None:
            bar.close()
    for note in notes:
        warnings.warn(note, ScenarioWarning, stacklevel=3)
    return lines


class _Bar:
    """The bar of tqdm, of whichever kind fits; nothing without tqdm."""

    def __init__(self, title: str) -> None:
        self._bar: Any = None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        form = "{desc}{percentage:3.0f}%|{bar}| {n:.0f}/{total:.0f} [{elapsed}<{remaining}]"
        # Nothing where nobody looks: standard error is no terminal. Notebooks show it always.
        self._bar = tqdm(total=0, desc=title or None, bar_format=form, unit="run", disable=None)

    def move(self, batch: Batch) -> None:
        self.show(*batch.reached())

    def show(self, done: float, runs: float) -> None:
        """So many of so many runs are done."""
        if self._bar is None or self._bar.disable:
            return
        self._bar.total = runs
        self._bar.n = min(done, runs)
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
