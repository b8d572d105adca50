"""Pieces of a sweep: what is asked, and what one gives."""

from __future__ import annotations

from typing import Any, NamedTuple

from ackclock._core import Judge, Lines, Scenario

CODEC = "zstd"
_LEVEL = 1


class Asked(NamedTuple):
    """What is the same for all pieces of a sweep."""

    only: str | None
    shard: str | None
    records: bool
    """Whether what runs record is kept."""


class Piece(NamedTuple):
    """What the runs at some places in the order of a sweep have given."""

    start: int
    stop: int
    runs: int
    """How many there were: fewer than places where repetitions ended earlier."""
    failed: int
    lines: bytes
    """All that :class:`Lines` has, compressed."""
    size: int
    """The bytes of the lines, not compressed."""
    measures: bytes
    """What expectations look at."""
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
    plain = lines.pack()
    return Piece(*places, len(lines), lines.failed, compress(plain), len(plain), measures, took, notes)
