"""Results of a sweep that stay in their directory until they are looked at."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock._core import Lines, Table
from ackclock._pieces import arrow
from ackclock._results import Records, Result, Sweep, frame
from ackclock._store import LINES, MANIFEST, RECORDS, SCENARIO, TABLES, Places, check_complete, lines_of, parts

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class StoredSweep(Sweep):
    """A :class:`Sweep` in a directory of ``out=``. Results are read when they are asked for.

    ``json`` reads all lines at once; :meth:`lines` gives them one by one. :meth:`dataset` and :meth:`scan`
    are for frames that do not fit into memory.
    """

    folder: Path
    """The directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        check_complete(folder, manifest)
        manifest["scenario"] = (folder / SCENARIO).read_text(encoding="utf-8")
        super().__init__(Lines.from_text(""), None, manifest)
        self._about = manifest
        self._part: tuple[Places, Lines] | None = None

    @property
    def json(self) -> str:
        return "".join(lines_of(self.folder, places) for places in parts(self.folder))

    def lines(self) -> Iterator[str]:
        """The lines of ``ackclock FILE --json``, without their ends."""
        for places in parts(self.folder):
            yield from lines_of(self.folder, places).splitlines()

    def dataset(self, part: str = "flows") -> Any:
        """A part of the results as a ``pyarrow.dataset.Dataset``: filters and columns before reading.

        The parts are those of :meth:`table`, but for expectations. Raises ValueError for another one, and
        FileNotFoundError if no run has rows in it.
        """
        import pyarrow.dataset

        return pyarrow.dataset.dataset([str(file) for file in self._files(part)], format="parquet")

    def scan(self, part: str = "flows") -> pl.LazyFrame:
        """The same as a lazy frame of Polars."""
        import polars

        return polars.scan_parquet(self._files(part))

    def _files(self, part: str) -> list[Path]:
        if part not in TABLES:
            raise ValueError(f"there is no table `{part}`; expected {', '.join(TABLES)}")
        files = sorted((self.folder / part).glob("part-*.parquet"))
        if not files:
            raise FileNotFoundError(2, f"No run has rows in the table {part}", str(self.folder / part))
        return files

    def table(self, part: str = "flows") -> Table:
        pa = arrow()
        if part == "expectations":
            return self._last.table(part, True)
        try:
            whole = self.dataset(part).to_table()
        except FileNotFoundError:
            return self._lines.table(part, True)
        return Table.from_arrow(pa.table(whole.combine_chunks()))

    @property
    def expectations(self) -> pd.DataFrame:
        return frame(self._last.table("expectations", False))

    @property
    def failed(self) -> int:
        return int(self._about["failed"])

    def __len__(self) -> int:
        return int(self._about["done"])

    @cached_property
    def _starts(self) -> list[int]:
        """The numbers of lines before each part."""
        pa = arrow()
        starts = [0]
        for file in self._files("runs"):
            starts.append(starts[-1] + pa.parquet.read_metadata(file).num_rows)
        return starts

    def _lines_of(self, places: Places) -> Lines:
        if self._part is None or self._part[0] != places:
            self._part = places, Lines.from_text(lines_of(self.folder, places))
        return self._part[1]

    @property
    def _last(self) -> Lines:
        text = lines_of(self.folder, parts(self.folder)[-1])
        return Lines.from_text(text.splitlines()[-1])

    def __getitem__(self, number: int) -> Result:
        place = number + len(self) if number < 0 else number
        if not 0 <= place < len(self):
            raise IndexError(f"run {number} of {len(self)}")
        part = bisect_right(self._starts, place) - 1
        lines = self._lines_of(parts(self.folder)[part])
        inside = place - self._starts[part]
        folder = self.folder / RECORDS / f"{json.loads(lines.json(inside))['index']:09}"
        names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
        return Result(lines, inside, Records(names, lambda name: (folder / name).read_bytes()), self.manifest)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]} in {str(self.folder)!r}>"


def is_stored(folder: Path) -> bool:
    """Whether a directory is one of ``out=``."""
    return (folder / LINES).is_dir() and (folder / SCENARIO).is_file()
