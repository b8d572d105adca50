"""Results of a sweep that stay in their directory until they are looked at."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock._core import Lines, Parameters, Table, manifest
from ackclock._pieces import arrow
from ackclock._results import Records, Result, Sweep, frame

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

SUMMARIES = "summary.jsonl"
SUMMARY = "summary.json"
TABLES = ("runs", "flows", "links", "groups", "kinds", "windows", "workloads", "commands", "datagrams")

_DIGITS = 4
_FOLDER = "tables"
_CHUNK = 5000
"""Lines that are read at a time."""
_OF = b"ackclock.summary"
"""In the metadata of a file with a table: the hash of the lines that it was made of."""


class StoredSweep(Sweep):
    """A :class:`Sweep` in a directory, of ``out=`` or of the command line's ``--out``. Results are read when they are
    asked for.

    ``json`` and tables read all lines at once; :meth:`lines` gives them one by one, and items are read alone.
    :meth:`dataset` and :meth:`scan` are for frames that do not fit into memory: they write the table into the
    directory, as ``tables/PART.parquet``, unless it is there.
    """

    folder: Path
    """The directory."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        super().__init__(Lines.from_text(""), None, about)
        self.folder = folder
        self._about = about
        self._is_sweep = SUMMARIES in about["files"]

    @property
    def json(self) -> str:
        return "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> Iterator[str]:
        """The lines of ``ackclock FILE --json``, without their ends."""
        if not self._is_sweep:
            yield Lines.from_document((self.folder / SUMMARY).read_text(encoding="utf-8")).json(0)
            return
        with open(self.folder / SUMMARIES, encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n")

    def _chunks(self) -> Iterator[Lines]:
        lines = self.lines()
        while chunk := list(islice(lines, _CHUNK)):
            yield Lines.from_text("\n".join(chunk))

    def dataset(self, part: str = "flows") -> Any:
        """A part of the results as a ``pyarrow.dataset.Dataset``: filters and columns before reading.

        The parts are those of :meth:`table`, but for expectations. Raises ValueError for another one,
        FileNotFoundError if no run has rows in it, and another OSError if its file cannot be written.
        """
        import pyarrow.dataset

        return pyarrow.dataset.dataset(str(self._file(part)), format="parquet")

    def scan(self, part: str = "flows") -> pl.LazyFrame:
        """The same as a lazy frame of Polars."""
        import polars

        return polars.scan_parquet(self._file(part))

    def _file(self, part: str) -> Path:
        pa = arrow()
        if part not in TABLES:
            raise ValueError(f"there is no table `{part}`; expected {', '.join(TABLES)}")
        file = self.folder / _FOLDER / f"{part}.parquet"
        digest = self._about["files"][SUMMARIES if self._is_sweep else SUMMARY]["sha256"].encode()
        if not file.exists() or (pa.parquet.read_schema(file).metadata or {}).get(_OF) != digest:
            self._write(part, file, digest)
        return file

    def _write(self, part: str, file: Path, digest: bytes) -> None:
        pa = arrow()
        parameters = Parameters()
        for lines in self._chunks():
            parameters.see(lines)

        def tables() -> Iterator[Any]:
            return (pa.table(lines.part(part, parameters)) for lines in self._chunks())

        rows, schemas = 0, []
        for table in tables():
            rows += table.num_rows
            schemas.append(table.schema)
        if rows == 0:
            raise FileNotFoundError(2, f"No run has rows in the table {part}", str(self.folder))
        schema = typed(unified(schemas)).with_metadata({_OF: digest})
        file.parent.mkdir(exist_ok=True)
        partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
        try:
            with pa.parquet.ParquetWriter(partial, schema, compression="zstd") as writer:
                for table in tables():
                    writer.write_table(cast(table, schema))
            os.replace(partial, file)
        finally:
            partial.unlink(missing_ok=True)

    @cached_property
    def _whole(self) -> Lines:
        return Lines.from_text(self.json)

    def table(self, part: str = "flows") -> Table:
        return (self._last if part == "expectations" else self._whole).table(part, True)

    @property
    def expectations(self) -> pd.DataFrame:
        return frame(self._last.table("expectations", False))

    @property
    def failed(self) -> int:
        return int(self._about.get("failed", 0))

    @cached_property
    def _ends(self) -> array[int]:
        """Where each line of the file ends."""
        ends = array("Q")
        at = 0
        with open(self.folder / SUMMARIES, "rb") as file:
            for line in file:
                at += len(line)
                ends.append(at)
        return ends

    def __len__(self) -> int:
        return len(self._ends) if self._is_sweep else 1

    def _line(self, place: int) -> Lines:
        if not self._is_sweep:
            return Lines.from_text(self.json)
        start = self._ends[place - 1] if place > 0 else 0
        with open(self.folder / SUMMARIES, "rb") as file:
            file.seek(start)
            return Lines.from_text(file.read(self._ends[place] - start).decode())

    @property
    def _last(self) -> Lines:
        return self._line(len(self) - 1) if len(self) > 0 else self._lines

    @cached_property
    def _names(self) -> dict[int, list[str]]:
        """What each run has recorded."""
        names: dict[int, list[str]] = {}
        for name in self._about["files"]:
            if name.startswith("runs/"):
                _, run, rest = name.split("/", 2)
                names.setdefault(int(run), []).append(rest)
        return names

    def __getitem__(self, number: int) -> Result:
        place = number + len(self) if number < 0 else number
        if not 0 <= place < len(self):
            raise IndexError(f"run {number} of {len(self)}")
        lines = self._line(place)
        if not self._is_sweep:
            return Result(lines, 0, single(self.folder, self._about["files"]), self.manifest)
        [run] = lines.runs()
        digits = max(len(str(max(int(self._about["runs"]) - 1, 0))), _DIGITS)
        folder = self.folder / "runs" / f"{run:0{digits}}"
        return Result(lines, 0, Records(self._names.get(run, []), _reader(folder)), self.manifest)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]} in {str(self.folder)!r}>"


def stored(folder: Path) -> StoredSweep:
    """The results in a complete directory."""
    return StoredSweep(folder, json.loads(manifest(folder)))


def _reader(folder: Path) -> Callable[[str], bytes]:
    return lambda name: (folder / name).read_bytes()


def single(folder: Path, files: Iterable[str]) -> Records:
    """What the only run of a directory has recorded."""
    return Records([name for name in files if name != SUMMARY], _reader(folder))


def unified(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The columns of all, in the order in which they appear, each of the narrowest type that holds them.

    Those without values are without type.
    """
    pa = arrow()
    kinds: dict[str, Any] = {}
    for schema in schemas:
        for field in schema:
            kinds[field.name] = _wider(kinds.get(field.name, pa.null()), field.type)
    return pa.schema(list(kinds.items()))


def _wider(a: Any, b: Any) -> Any:
    pa = arrow()
    if pa.null() in (a, b) or a == b:
        return b if a == pa.null() else a
    return pa.float64() if {a, b} == {pa.int64(), pa.float64()} else pa.large_string()


def typed(schema: pa.Schema) -> pa.Schema:
    """The same with numbers where there are no values."""
    pa = arrow()
    return pa.schema([(f.name, pa.float64() if f.type == pa.null() else f.type) for f in schema])


def cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with these columns; those that it lacks are without values."""
    pa = arrow()

    def column(field: Any) -> Any:
        place = table.schema.get_field_index(field.name)
        return pa.nulls(table.num_rows, field.type) if place < 0 else table.column(place).cast(field.type)

    return pa.table([column(field) for field in schema], schema=schema)
