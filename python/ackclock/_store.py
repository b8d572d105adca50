"""Results of a sweep in a directory, written as they come.

    manifest.json, scenario.toml    what it is of
    flows/part-A-B.parquet          rows of the flows of the runs at places A to B; others likewise
    lines/part-A-B.jsonl.zst        their lines; it appears last, and with it the part is there
    records/RUN/NAME                what runs have recorded

Every file appears under its name when it is complete, so that whatever ends the writer leaves a directory
with which another one can go on.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pickle
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock._core import Judge, Lines, Scenario, __build__, __version__
from ackclock._errors import RunError
from ackclock._pieces import Asked, Piece, arrow, compress, decompress, of_stream

if TYPE_CHECKING:
    import pyarrow as pa

Places = tuple[int, int]

LAYOUT = 1
"""Raised when older versions cannot read what this one writes."""
MANIFEST = "manifest.json"
SCENARIO = "scenario.toml"
LINES = "lines"
RECORDS = "records"
TABLES = ("runs", "flows", "links", "groups", "kinds", "windows", "workloads", "commands", "datagrams")

_LOCK = ".lock"
_PARTIAL = ".partial"
_PART_BYTES = 32 << 20
"""Bytes of the lines of a part, about."""
_PART_AGE = 30.0
"""How long results wait for others of their part, in s: what a writer that is killed loses."""
_WAITING = 4 * _PART_BYTES
"""Bytes of lines that wait at most."""
_EMPTY = {b"ackclock.empty": b"1"}
"""Of a column without values, whose type is not known."""
_NAME = re.compile(r"part-(\d+)-(\d+)\.jsonl\.zst\Z")


def parts(folder: Path) -> list[Places]:
    """The parts that are there, in order, each as the places from and to (not included)."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder / LINES):
            if match := _NAME.match(entry.name):
                found.append((int(match[1]), int(match[2]) + 1))
    return sorted(found)


def part_name(places: Places) -> str:
    """The name of a part's files, without what tells their kinds."""
    return f"part-{places[0]:09}-{places[1] - 1:09}"


def lines_of(folder: Path, places: Places) -> str:
    """The lines of a part."""
    return decompress((folder / LINES / f"{part_name(places)}.jsonl.zst").read_bytes()).decode()


class _Waiting:
    """Pieces that follow each other and will be a part."""

    def __init__(self, piece: Piece) -> None:
        self.pieces = [piece]
        self.since = time.monotonic()

    @property
    def places(self) -> Places:
        return self.pieces[0].start, self.pieces[-1].stop

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


class Store:
    """The directory of a sweep while it is written."""

    def __init__(self, out: str | os.PathLike[str], scenario: Scenario, asked: Asked) -> None:
        self.folder = Path(out)
        self._scenario = scenario
        self._asked = asked
        self._total, self._block = scenario.places(asked.only, asked.shard)
        self._waiting: list[_Waiting] = []
        self._done: list[Places] = []
        self._schemas: dict[str, dict[Places, pa.Schema]] = {}
        self._judge = Judge(scenario)
        self._judged = scenario.expectations > 0 and asked.only is None and asked.shard is None
        self._failed = 0
        self._runs = 0
        self._lock: int | None = None
        arrow()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # What is there already.

    def open(self, resume: bool, overwrite: bool) -> list[Places]:
        """Prepares the directory. Gives the places of the runs that are missing.

        Raises FileExistsError if there are other results, or something else; BlockingIOError if another
        writer is at it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        manifest = self._earlier()
        if manifest is None and any(entry.name != _LOCK for entry in os.scandir(self.folder)):
            if not self._is_ours():
                raise FileExistsError(
                    17, "The directory holds something else than results of a sweep", str(self.folder)
                )
            manifest = {}
        if overwrite:
            self._clear()
        elif manifest and not resume:
            raise FileExistsError(
                17, "The directory holds results: resume=True continues, overwrite=True drops them", str(self.folder)
            )
        elif manifest:
            self._compare(manifest)
        self._tidy()
        if manifest is None or overwrite or not manifest:
            self._begin()
        for places in self._done:
            self._take_in(places)
        return self._gaps()

    def _take_lock(self) -> None:
        self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(self._lock, 200, 0).decode(errors="replace").strip()
            text = f"Another process writes into the directory ({who or 'unknown'})"
            raise BlockingIOError(11, text, str(self.folder)) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)

    def _earlier(self) -> dict[str, Any] | None:
        try:
            found = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"{self.folder / MANIFEST}: not JSON: {error}") from error
        if not isinstance(found, dict) or "layout" not in found:
            raise FileExistsError(17, "The directory holds results of the command line", str(self.folder))
        return found

    def _is_ours(self) -> bool:
        """Whether everything that is there may be left of a writer that had just begun."""
        known = {_LOCK, SCENARIO, MANIFEST}
        names = {entry.name for entry in os.scandir(self.folder)}
        return all(name in known or name.endswith(_PARTIAL) for name in names)

    def _clear(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.folder / MANIFEST).unlink()
        for name in (LINES, RECORDS, *TABLES):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _compare(self, manifest: dict[str, Any]) -> None:
        ours = self._manifest()
        words = {
            "layout": "layout of the directory",
            "ackclock": "version of ackclock",
            "build": "build of ackclock",
            "only": "`only`",
            "shard": "`shard`",
            "records": "whether records are kept",
        }
        for key, what in words.items():
            if manifest.get(key) != ours[key]:
                self._refuse(what, manifest.get(key), ours[key])
        if manifest.get("scenario_sha256") != ours["scenario_sha256"]:
            before = (self.folder / SCENARIO).read_text(encoding="utf-8")
            key, now, then = self._scenario.difference(before) or ("scenario", "another one", "one")
            self._refuse(f"`{key}`", then, now)
        if manifest.get("inputs") != ours["inputs"]:
            names = {*manifest.get("inputs", {}), *ours["inputs"]}
            name = min(n for n in names if manifest.get("inputs", {}).get(n) != ours["inputs"].get(n))
            raise FileExistsError(17, f"The results are of other contents of the file {name}", str(self.folder))

    def _refuse(self, what: str, there: object, here: object) -> None:
        shown = [str(value)[:200] if value is not None else "nothing" for value in (there, here)]
        text = f"The results are of another sweep: {what} was {shown[0]}, and is {shown[1]}"
        raise FileExistsError(17, text, str(self.folder))

    def _tidy(self) -> None:
        """Removes what belongs to no part."""
        self._done = parts(self.folder)
        for (_, stop), (start, _) in zip(self._done, self._done[1:], strict=False):
            if start < stop:
                raise ValueError(f"{self.folder / LINES}: parts overlap at place {start}")
        if self._done and self._done[-1][1] > self._total:
            raise ValueError(f"{self.folder / LINES}: there are parts beyond the last run")
        known = {part_name(places) for places in self._done}
        for name in (LINES, *TABLES):
            with contextlib.suppress(FileNotFoundError):
                for entry in os.scandir(self.folder / name):
                    if entry.name.split(".")[0] not in known or entry.name.endswith(_PARTIAL):
                        os.unlink(entry.path)

    def _begin(self) -> None:
        self._write(self.folder / SCENARIO, self._scenario.resolved().encode())
        self._write_manifest({"partial": True})

    def _manifest(self) -> dict[str, Any]:
        resolved = self._scenario.resolved().encode()
        files = self._scenario.pack()[4]
        return {
            "ackclock": __version__,
            "build": __build__,
            "layout": LAYOUT,
            "title": self._scenario.title,
            "runs": self._scenario.runs,
            "axes": self._scenario.axes,
            "only": self._asked.only,
            "shard": self._asked.shard,
            "records": self._asked.records,
            "scenario_sha256": hashlib.sha256(resolved).hexdigest(),
            "inputs": {name: hashlib.sha256(contents).hexdigest() for name, contents in files},
            "files": {},
        }

    def _write_manifest(self, further: dict[str, Any]) -> None:
        text = json.dumps({**self._manifest(), **further}, indent=2, ensure_ascii=False)
        self._write(self.folder / MANIFEST, (text + "\n").encode())

    def _take_in(self, places: Places) -> None:
        """Learns what a part that is there holds."""
        pa = arrow()
        lines = Lines.from_text(lines_of(self.folder, places))
        self._runs += len(lines)
        self._failed += lines.failed
        if self._judged:
            self._judge.add(Judge.measure(self._scenario, lines))
        for name in TABLES:
            file = self._file(name, places)
            if file.exists():
                self._schemas.setdefault(name, {})[places] = pa.parquet.read_schema(file)

    def _gaps(self) -> list[Places]:
        gaps, at = [], 0
        for start, stop in [*self._done, (self._total, self._total)]:
            if at < start:
                gaps.append((at, start))
            at = stop
        return gaps

    @property
    def reached(self) -> tuple[int, int]:
        """Places of which the runs are done, and all places."""
        waiting = (waiting.places for waiting in self._waiting)
        return sum(stop - start for start, stop in [*self._done, *waiting]), self._total

    # What comes.

    def add(self, piece: Piece) -> None:
        """Takes in runs, in any order; they are on the disk after a while."""
        self._runs += piece.runs
        self._failed += piece.failed
        if piece.measures:
            self._judge.add(piece.measures)
        before = next((w for w in self._waiting if w.places[1] == piece.start), None)
        if before is not None:
            before.pieces.append(piece)
        else:
            before = _Waiting(piece)
            self._waiting.append(before)
        after = next((w for w in self._waiting if w.places[0] == before.places[1]), None)
        if after is not None and before.size + after.size <= _PART_BYTES:
            before.pieces.extend(after.pieces)
            before.since = min(before.since, after.since)
            self._waiting.remove(after)
        self.tick()

    def tick(self) -> None:
        """Writes what is enough for a part, or has waited for long."""
        now = time.monotonic()
        for waiting in list(self._waiting):
            if waiting.size >= _PART_BYTES or now - waiting.since >= _PART_AGE:
                self._write_part(waiting)
        while sum(waiting.size for waiting in self._waiting) > _WAITING:
            self._write_part(max(self._waiting, key=lambda waiting: waiting.size))

    def flush(self) -> None:
        """Writes all that has come."""
        for waiting in list(self._waiting):
            self._write_part(waiting)

    def _write_part(self, waiting: _Waiting) -> None:
        pa = arrow()
        places, pieces = waiting.places, waiting.pieces
        if self._asked.records:
            for piece in pieces:
                self._write_records(piece)
        for name in TABLES:
            tables = [of_stream(piece.tables[name]) for piece in pieces if name in piece.tables]
            if tables:
                schema = unified(table.schema for table in tables)
                whole = pa.concat_tables([cast(table, schema) for table in tables])
                self._write_table(name, places, whole)
        name = f"{part_name(places)}.jsonl.zst"
        self._write(self.folder / LINES / name, b"".join(piece.lines for piece in pieces))
        self._done = sorted([*self._done, places])
        self._waiting.remove(waiting)

    def _write_records(self, piece: Piece) -> None:
        if piece.records:
            for run, files in pickle.loads(decompress(piece.records)).items():
                for name, contents in files.items():
                    self._write(self.folder / RECORDS / f"{run:09}" / name, contents, sync=False)

    def _file(self, name: str, places: Places) -> Path:
        return self.folder / name / f"{part_name(places)}.parquet"

    def _write_table(self, name: str, places: Places, table: pa.Table) -> None:
        pa = arrow()
        sink = pa.BufferOutputStream()
        pa.parquet.write_table(table, sink, compression="zstd")
        self._write(self._file(name, places), sink.getvalue())
        self._schemas.setdefault(name, {})[places] = table.schema

    def _write(self, path: Path, contents: Any, sync: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}{_PARTIAL}")
        with open(partial, "wb") as file:
            file.write(contents)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(partial, path)

    # The end.

    def finish(self) -> None:
        """Completes the directory: expectations in the last line, the same columns in all parts of a table."""
        self.flush()
        if self._judged and self._done:
            self._conclude()
        for name, schemas in self._schemas.items():
            self._unify(name, schemas)
        digest, last = hashlib.sha256(), ""
        for places in self._done:
            last = lines_of(self.folder, places)
            digest.update(last.encode())
        further = {"partial": False, "done": self._runs, "failed": self._failed}
        self._write_manifest({**further, "lines_sha256": digest.hexdigest()})

    def _conclude(self) -> None:
        places = self._done[-1]
        *others, last = lines_of(self.folder, places).splitlines()
        if "expectations" not in json.loads(last):
            text = "".join(line + "\n" for line in [*others, self._judge.conclude(last)])
            self._write(self.folder / LINES / f"{part_name(places)}.jsonl.zst", compress(text.encode()))

    def _unify(self, name: str, schemas: dict[Places, pa.Schema]) -> None:
        pa = arrow()
        schema = typed(unified(schemas[places] for places in sorted(schemas)))
        for places, found in schemas.items():
            if not found.equals(schema, check_metadata=False):
                table = pa.parquet.read_table(self._file(name, places))
                self._write_table(name, places, cast(table, schema))


def _kind(field: Any) -> Any:
    pa = arrow()
    return pa.null() if (field.metadata or {}).items() >= _EMPTY.items() else field.type


def unified(schemas: Iterator[pa.Schema]) -> pa.Schema:
    """The columns of all, in the order in which they appear, each of the narrowest type that holds them.

    Those without values are of numbers, and marked.
    """
    pa = arrow()
    kinds: dict[str, Any] = {}
    for schema in schemas:
        for field in schema:
            kind, known = _kind(field), kinds.get(field.name, pa.null())
            kinds[field.name] = (
                known if kind in (known, pa.null()) else kind if known == pa.null() else _wider(known, kind)
            )
    empty = [
        pa.field(name, pa.float64(), metadata=_EMPTY) if kind == pa.null() else pa.field(name, kind)
        for name, kind in kinds.items()
    ]
    return pa.schema(empty)


def _wider(a: Any, b: Any) -> Any:
    pa = arrow()
    return pa.float64() if {a, b} == {pa.int64(), pa.float64()} else pa.large_string()


def typed(schema: pa.Schema) -> pa.Schema:
    """The same without marks."""
    pa = arrow()
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with these columns; those that it lacks are without values."""
    pa = arrow()

    def column(field: Any) -> Any:
        place = table.schema.get_field_index(field.name)
        if place < 0:
            return pa.nulls(table.num_rows, field.type)
        if _kind(table.schema.field(place)) == pa.null():
            return pa.nulls(table.num_rows, field.type)
        return table.column(place).cast(field.type)

    return pa.table([column(field) for field in schema], schema=schema)


def check_complete(folder: Path, manifest: dict[str, Any]) -> None:
    """Raises RunError if runs are missing."""
    if manifest.get("partial", True):
        raise RunError(f"{folder} is not complete: its sweep was broken off; ackclock.sweep(..., out=...) continues")
