"""Pieces of a sweep: what is asked, and what one gives."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

from ackclock._core import Judge, Lines, Scenario

if TYPE_CHECKING:
    import pyarrow as pa

CODEC = "zstd"
_LEVEL = 1


class Asked(NamedTuple):
    """What is the same for all pieces of a sweep."""

    only: str | None
    shard: str | None
    records: bool
    """Whether what runs record is kept."""
    stored: bool
    """Whether results go to a directory: as text and tables, and not as :class:`Lines`."""


class Piece(NamedTuple):
    """What the runs at some places in the order of a sweep have given."""

    start: int
    stop: int
    runs: int
    """How many there were: fewer than places where repetitions ended earlier."""
    failed: int
    lines: bytes
    """Compressed: lines of text if they are stored, otherwise all that :class:`Lines` has."""
    size: int
    """The bytes of the lines, not compressed."""
    tables: dict[str, bytes]
    """Arrow streams by the names of the parts, if they are stored."""
    measures: bytes
    """What expectations look at."""
    records: bytes
    """What runs have recorded, if they are stored: compressed pickle of a dict by runs."""
    took: float
    """Seconds that the runs took."""
    notes: list[str]


def arrow() -> Any:
    """The module pyarrow. Raises ImportError that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ImportError("results in files and clusters need pyarrow: pip install distributed pyarrow") from error
    return pyarrow


def compress(data: bytes) -> bytes:
    """A frame of zstd, which can follow others in a file."""
    pa = arrow()
    compressed: bytes = pa.Codec(CODEC, compression_level=_LEVEL).compress(data, asbytes=True)
    return compressed


def decompress(data: bytes) -> bytes:
    """All frames of it."""
    pa = arrow()
    found: bytes = pa.CompressedInputStream(pa.py_buffer(data), CODEC).read()
    return found


def piece(
    scenario: Scenario, asked: Asked, places: tuple[int, int], lines: Lines, took: float, notes: list[str]
) -> Piece:
    """Packs what the runs at these places have given."""
    judged = scenario.expectations > 0 and asked.only is None and asked.shard is None
    measures = Judge.measure(scenario, lines) if judged else b""
    tables: dict[str, bytes] = {}
    records = b""
    if asked.stored:
        plain = lines.text().encode()
        tables = {name: _stream(table) for name, table in lines.tables(scenario)}
        if asked.records:
            recorded = {run: lines.records(place) for place, run in enumerate(lines.runs())}
            recorded = {run: found for run, found in recorded.items() if found}
            records = compress(pickle.dumps(recorded)) if recorded else b""
    else:
        plain = lines.pack()
    packed = compress(plain)
    return Piece(*places, len(lines), lines.failed, packed, len(plain), tables, measures, records, took, notes)


def _stream(table: Any) -> bytes:
    pa = arrow()
    found = pa.table(table)
    options = pa.ipc.IpcWriteOptions(compression=CODEC)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, found.schema, options=options) as writer:
        writer.write_table(found)
    return sink.getvalue()


def of_stream(stream: bytes) -> pa.Table:
    """The table of a stream."""
    pa = arrow()
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_all()
