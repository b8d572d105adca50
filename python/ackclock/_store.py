"""The output directory of a sweep while it is written: that of ``ackclock FILE --out``.

Runs are written in their order; what comes before its turn waits. Whatever ends the writer, the runs that are
written stay, and another one can go on behind them, as can the command line with ``--resume``.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from types import TracebackType

from ackclock._core import Judge, Lines, Output, Scenario
from ackclock._errors import ScenarioWarning
from ackclock._pieces import Asked, Piece, decompress

Places = tuple[int, int]

_WAITING = 128 << 20
"""Bytes of pieces that wait in memory at most; others wait in a file."""


class Store:
    """The directory of a sweep while it is written.

    Raises FileExistsError if there are other results, or something else; BlockingIOError if another writer is at
    it.
    """

    def __init__(
        self, out: str | os.PathLike[str], scenario: Scenario, asked: Asked, resume: bool, overwrite: bool
    ) -> None:
        self.folder = Path(out)
        self._judge = Judge(scenario)
        self._judged = scenario.expectations > 0 and asked.only is None and asked.shard is None
        self._total, _ = scenario.places(asked.only, asked.shard)
        self._output, self._at, note = Output.open(
            scenario,
            self.folder,
            self._judge,
            only=asked.only,
            shard=asked.shard,
            resume=resume,
            overwrite=overwrite,
        )
        if note:
            warnings.warn(note, ScenarioWarning, stacklevel=4)
        self._waiting: dict[int, Piece | tuple[Piece, int, int]] = {}
        self._ahead = 0
        self._bytes = 0
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115

    def __enter__(self) -> Store:
        return self

    def __exit__(self, error: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        # What has come is kept, however this ends.
        self._spool.close()
        self._output.leave()

    @property
    def gaps(self) -> list[Places]:
        """The places of the runs that are missing."""
        return [(self._at, self._total)] if self._at < self._total else []

    @property
    def reached(self) -> tuple[int, int]:
        """Places of which the runs are done, and all places."""
        return self._at + self._ahead, self._total

    def add(self, piece: Piece) -> None:
        """Takes in runs, in any order."""
        if piece.measures:
            self._judge.add(piece.measures)
        self._wait(piece)
        while self._at in self._waiting:
            found = self._next()
            self._output.add(Lines.unpack(decompress(found.lines)))
            self._at = found.stop

    def _wait(self, piece: Piece) -> None:
        self._ahead += piece.stop - piece.start
        if piece.start != self._at and self._bytes + len(piece.lines) > _WAITING:
            place = self._spool.seek(0, os.SEEK_END)
            self._spool.write(piece.lines)
            self._waiting[piece.start] = piece._replace(lines=b""), place, len(piece.lines)
        else:
            self._waiting[piece.start] = piece
            self._bytes += len(piece.lines)

    def _next(self) -> Piece:
        found = self._waiting.pop(self._at)
        if isinstance(found, Piece):
            self._bytes -= len(found.lines)
        else:
            piece, place, length = found
            self._spool.seek(place)
            found = piece._replace(lines=self._spool.read(length))
        self._ahead -= found.stop - found.start
        return found

    def finish(self) -> None:
        """Completes the directory, with expectations in the last line."""
        last = self._output.last
        self._output.finish(self._judge.conclude(last) if self._judged and last is not None else None)
