"""Results of runs: JSON, tables, records."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ackclock import _core
from ackclock._core import Lines, Table
from ackclock._waiting import patiently

if TYPE_CHECKING:
    import pandas as pd

_SERIES = "series.csv"
_MANY = 100
"""Lines that are read in an instant are fewer."""


def frame(table: Table) -> pd.DataFrame:
    """A table as a pandas DataFrame. Columns of numbers without missing values are not copied.

    Raises ImportError without pandas and pyarrow.
    """
    try:
        import pandas  # noqa: F401
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "data frames need pandas and pyarrow: pip install pandas pyarrow; "
            "`.table(...)` needs neither, and Polars takes it: polars.DataFrame(result.table('flows'))"
        ) from error
    found: pd.DataFrame = pyarrow.table(table).to_pandas(split_blocks=True)
    return found


class Records(Mapping[str, bytes]):
    """What a run has recorded: contents by name (``series.csv``, ``queue.csv``, ``tcp.csv``, ...)."""

    def __init__(self, names: list[str], load: Any) -> None:
        self._names = names
        self._load = load

    def __getitem__(self, name: str) -> bytes:
        if name not in self._names:
            raise KeyError(name)
        contents: bytes = self._load(name)
        return contents

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        # The contents go with it, wherever they are.
        return _records, (dict(self),)

    def __repr__(self) -> str:
        return f"<ackclock.Records: {', '.join(self._names) or 'none'}>"


def _records(contents: dict[str, bytes]) -> Records:
    return Records(list(contents), contents.__getitem__)


class _Tables:
    """What one run and a sweep have in common."""

    _lines: Lines
    _of_runs: bool
    manifest: dict[str, Any] | None
    """Of results that were read from a directory: its ``manifest.json``; otherwise None."""

    def table(self, part: str = "flows") -> Table:
        """A part of the results as Arrow data, which Polars, pyarrow and DuckDB take.

        ``part`` is ``runs`` (a row per run), ``flows``, ``links``, ``groups``, ``workloads``,
        ``windows``, ``kinds``, ``commands``, ``datagrams`` or ``expectations``. Columns have the
        names of the JSON keys, those of objects within objects with dots between; units are those
        of the names: ``_s`` seconds, ``_ms`` milliseconds, ``_bps`` bits per second, ``_bytes``.
        Lists are JSON text. In a sweep ``index`` (the number of the run), ``run`` (the number of
        the repetition) and the sweep's parameters come first: quantities as numbers, with their units
        (``bit/s``, ``s``, ``B``, ``p``) in the column behind, and tables by their names.

        Raises ValueError for another part.
        """
        of_runs = self._of_runs or part == "runs"
        if len(self._lines) < _MANY:
            return self._lines.table(part, of_runs)
        return patiently(lambda: self._lines.table(part, of_runs))

    @property
    def flows(self) -> pd.DataFrame:
        """A row per flow; see :meth:`table`."""
        return frame(self.table("flows"))

    @property
    def links(self) -> pd.DataFrame:
        """A row per link direction; see :meth:`table`."""
        return frame(self.table("links"))

    @property
    def groups(self) -> pd.DataFrame:
        """A row per group of flows of which only sums are kept; empty without any."""
        return frame(self.table("groups"))

    @property
    def workloads(self) -> pd.DataFrame:
        """A row per workload, with completion times; empty without any."""
        return frame(self.table("workloads"))

    @property
    def datagrams(self) -> pd.DataFrame:
        """A row per flow of datagrams, with what only those have; empty without any."""
        return frame(self.table("datagrams"))

    @property
    def expectations(self) -> pd.DataFrame:
        """A row per ``[[expect]]`` and point: ``metric``, ``value``, ``met`` and so on.

        Empty without any, and of a part of a sweep. A missed expectation is no exception.
        """
        return frame(self._lines.table("expectations", False))

    @property
    def runs(self) -> pd.DataFrame:
        """A row per run: what its summary has beside lists."""
        return frame(self.table("runs"))


class Result(_Tables):
    """What one run gives."""

    def __init__(
        self, lines: Lines, number: int = 0, records: Records | None = None, manifest: dict[str, Any] | None = None
    ) -> None:
        self.json = lines.json(number)
        self._lines = lines if len(lines) == 1 else Lines.from_text(self.json)
        self._of_runs = False
        self.manifest = manifest
        if records is None:
            records = _records(lines.records(number))
        self.records = records

    json: str
    """The line of ``ackclock FILE --json``, byte for byte, without its end."""
    records: Records
    """What the run has recorded: contents by name of the file."""

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The line as a dict; docs/metrics.md describes its keys."""
        found: dict[str, Any] = json.loads(self.json)
        return found

    @property
    def failed(self) -> bool:
        """Whether the run failed, as one of a sweep may; ``summary["error"]`` says why."""
        return bool(self.summary.get("failed", False))

    def table(self, part: str = "flows") -> Table:
        """As in a sweep, without columns that tell runs apart; also records: ``table("queue.csv")``.

        Raises ValueError for another part, or what was not recorded.
        """
        if not part.endswith(".csv"):
            return super().table(part)
        if part not in self.records:
            kept = ", ".join(self.records) or "nothing"
            raise ValueError(
                f"the run has no {part}, it has recorded {kept}; "
                f"ask for it by record=[{part.removesuffix('.csv')!r}] or in the scenario's [record]"
            )
        return Table.from_csv(self.records[part])

    @property
    def series(self) -> pd.DataFrame:
        """Flows and links over time: a row per interval and flow or link direction.

        ``from_s`` and ``to_s`` are the interval, ``kind`` is ``flow``, ``subflow``, ``group`` or
        ``link``; docs/records.md describes the other columns. Raises ValueError if the run has
        recorded none: ``record=["series"]``.
        """
        return frame(self.table(_SERIES))

    def __repr__(self) -> str:
        found = self.summary
        state = ", failed" if self.failed else ""
        return f"<ackclock.Result {found['title']!r}: {found['duration_s']} s, {len(found['flows'])} flows{state}>"

    def _repr_html_(self) -> str:
        found = self.summary
        return (
            f"<b>{html.escape(found['title'] or 'Run')}</b>, {found['duration_s']} s, seed {found['seed']}, "
            f"repetition {found['run']}" + _failed(found) + _flow_rows([(found, {})], [])
        )


class Sweep(_Tables):
    """What the runs of a sweep give. It has a length, and its items are :class:`Result`.

    As Arrow data (``polars.DataFrame(sweep)``) it is its :attr:`flows`. Like a :class:`Result` it can be
    copied and pickled; one that was read from a directory needs that for its records.
    """

    def __init__(self, lines: Lines, records: Any = None, manifest: dict[str, Any] | None = None) -> None:
        self._lines = lines
        self._of_runs = True
        self._records = records
        self.manifest = manifest

    @property
    def json(self) -> str:
        """The lines of ``ackclock FILE --json``, byte for byte."""
        return self._lines.text()

    @property
    def frame(self) -> pd.DataFrame:
        """The tidy frame: a row per run and flow, parameters as columns; the same as :attr:`flows`."""
        return self.flows

    @property
    def failed(self) -> int:
        """How many runs failed; ``runs`` says which (``failed``) and why (``error``)."""
        return self._lines.failed

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, number: int) -> Result:
        place = number + len(self) if number < 0 else number
        if not 0 <= place < len(self):
            raise IndexError(f"run {number} of {len(self)}")
        records = None if self._records is None else self._records(json.loads(self._lines.json(place))["index"])
        return Result(self._lines, place, records, self.manifest)

    def __iter__(self) -> Iterator[Result]:
        return (self[number] for number in range(len(self)))

    def __arrow_c_schema__(self) -> object:
        return self.table("flows").__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table("flows").__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<ackclock.Sweep: {len(self)} runs{f', {self.failed} failed' if self.failed else ''}>"

    def _repr_html_(self) -> str:
        first = [self[number].summary for number in range(min(len(self), 5))]
        axes = list(first[0]["params"]) if first else []
        failed = f", {self.failed} failed" if self.failed else ""
        more = "" if len(self) <= len(first) else f"<i>and {len(self) - len(first)} more runs</i>"
        title = html.escape(first[0]["title"] or "Sweep") if first else "Sweep"
        return f"<b>{title}</b>, {len(self)} runs{failed}" + _flow_rows([(s, s["params"]) for s in first], axes) + more


def _failed(summary: dict[str, Any]) -> str:
    return f", <b>failed</b>: {html.escape(str(summary.get('error')))}" if summary.get("failed") else ""


def _cell(flow: dict[str, Any], path: str) -> str:
    found: Any = flow
    for key in path.split("."):
        found = (found or {}).get(key)
    return "" if found is None else _core.shown("flows", path, found)


_SHOWN = 20
_METRICS = ["goodput_bps", "rtt_ms.p50", "rtt_ms.p95", "sent_packets", "retransmitted_packets"]


def _flow_rows(runs: list[tuple[dict[str, Any], dict[str, Any]]], axes: list[str]) -> str:
    names = [*axes, "flow", "cc", *_core.headings("flows", _METRICS)]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    rows = []
    for summary, params in runs:
        for flow in summary["flows"]:
            cells = [
                *(str(summary.get("labels", {}).get(axis, params[axis])) for axis in axes),
                flow["id"],
                flow["cc"],
                *(_cell(flow, path) for path in _METRICS),
            ]
            rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    more = f"<i>and {len(rows) - _SHOWN} more flows</i>" if len(rows) > _SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows[:_SHOWN])}</tbody></table>{more}"
