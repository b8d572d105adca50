"""Flows, links and queues over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import pandas as pd

from ackclock._results import Result, frame
from ackclock.plot._axes import (
    COUNTS,
    DASHES,
    PALETTE,
    axes_or_new,
    begin_at,
    having,
    label_of,
    legend,
    most_of,
    tidy,
    unit_of,
    unit_on,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = [
    ("flow", "throughput_bps"),
    ("flow", "goodput_bps"),
    ("flow", "response_goodput_bps"),
    ("flow", "rtt_ms"),
    ("flow", "cwnd_bytes"),
    ("flow", "retransmitted_packets"),
    ("link", "throughput_bps"),
    ("link", "backlog_packets"),
    ("link", "sojourn_ms"),
    ("link", "dropped_packets"),
    ("link", "marked_packets"),
    ("link", "probability"),
]


def _series(data: Result | pd.DataFrame) -> pd.DataFrame:
    found = data.series if isinstance(data, Result) else data
    missing = {"from_s", "to_s", "kind", "id"} - set(found.columns)
    if missing:
        raise ValueError(f"no series of a run: the columns {', '.join(sorted(missing))} are missing")
    return found


def _busy(found: pd.DataFrame) -> list[str]:
    """The ids of links on which packets have waited; those on which none has tell nothing."""
    ids = []
    for name, rows in found[found["kind"] == "link"].groupby("id", sort=False):
        if rows["backlog_packets"].fillna(0).gt(0).any() or rows["dropped_packets"].fillna(0).gt(0).any():
            ids.append(str(name))
    return ids


def series(
    data: Result | pd.DataFrame,
    metric: str,
    *,
    kind: str = "flow",
    ids: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One column of the series over time: a line for each flow, or link direction.

    ``data`` is a result that has recorded a series, or its ``series``. ``kind`` is ``flow``,
    ``subflow``, ``group`` or ``link``; ``ids`` are those that are drawn: all, or of links those on
    which packets waited. Values are drawn at the ends of their intervals; the unit is on the axis.

    Raises ValueError without such a column or such rows.
    """
    found = having(_series(data), metric)
    if ids is None:
        ids = _busy(found) if kind == "link" else list(dict.fromkeys(found.loc[found["kind"] == kind, "id"]))
        if not ids and kind == "link":
            ids = list(dict.fromkeys(found.loc[found["kind"] == kind, "id"]))
    rows = found[(found["kind"] == kind) & found["id"].isin(list(ids))]
    if rows.empty:
        raise ValueError(f"the series has no rows of kind {kind!r}" + (f" with ids {list(ids)}" if ids else ""))
    ax = axes_or_new(ax)
    unit, scale = unit_on(ax, "y", metric, most_of(rows[metric]))
    for number, name in enumerate(ids):
        of = rows[rows["id"] == name]
        style: dict[str, Any] = {"color": PALETTE[number % 8], "linestyle": DASHES[number // 8 % 4]}
        ax.plot(of["to_s"], of[metric] * scale, label=name, linewidth=1.2, **style)
    begin_at(ax, "x", 0)
    begin_at(ax, "x", float(found["to_s"].max()))
    begin_at(ax, "y", 0)
    ax.set_xlabel("Time (s)")
    ax.set_ylabel(label_of(metric, f"{unit} per interval" if metric.split(".")[-1] in COUNTS else unit))
    tidy(ax)
    legend(ax)
    return ax


def throughput(data: Result | pd.DataFrame, *, ids: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Throughput of flows over time; see :func:`series`."""
    return series(data, "throughput_bps", ids=ids, ax=ax)


def rtt(data: Result | pd.DataFrame, *, ids: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Mean RTT of flows in each interval; see :func:`series`."""
    return series(data, "rtt_ms", ids=ids, ax=ax)


def cwnd(data: Result | pd.DataFrame, *, ids: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Congestion windows over time; see :func:`series`."""
    return series(data, "cwnd_bytes", ids=ids, ax=ax)


def backlog(data: Result | pd.DataFrame, *, ids: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Packets in the queues of links over time; see :func:`series`."""
    return series(data, "backlog_packets", kind="link", ids=ids, ax=ax)


def sojourn(data: Result | pd.DataFrame, *, ids: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Mean queueing delay of links in each interval; see :func:`series`."""
    return series(data, "sojourn_ms", kind="link", ids=ids, ax=ax)


def time_series(data: Result | pd.DataFrame, metrics: Sequence[tuple[str, str]] | None = None) -> list[Axes]:
    """All that the series tells, one panel below the other, with one axis of time.

    ``metrics`` are pairs of a kind and a column (``("link", "sojourn_ms")``). Left out, they are
    those of the report that are not 0 throughout. Returns the axes, from the top.
    """
    found = _series(data)
    if metrics is None:
        metrics = []
        for kind, metric in _PANELS:
            rows = found[found["kind"] == kind]
            if kind == "link":
                rows = rows[rows["id"].isin(_busy(found))]
            if metric in rows.columns and most_of(rows[metric]) > 0 and metric != "goodput_bps":
                metrics.append((kind, metric))
    if not metrics:
        raise ValueError("there is nothing to draw: nothing was sent")
    _, grid = plt.subplots(
        len(metrics), 1, sharex=True, squeeze=False, figsize=(7.0, 1.9 * len(metrics)), layout="constrained"
    )
    axes = [row[0] for row in grid]
    for number, ((kind, metric), ax) in enumerate(zip(metrics, axes, strict=True)):
        series(found, metric, kind=kind, ax=ax)
        unit, _ = unit_of(metric, most_of(found.loc[found["kind"] == kind, metric]))
        per = " per interval" if metric in COUNTS else ""
        of = "links" if kind == "link" else "flows"
        title = f"{label_of(metric)} of {of}" if metric == "throughput_bps" else label_of(metric)
        ax.set_title(title if len(ax.lines) > 1 else f"{title}: {ax.lines[0].get_label()}", fontsize="medium")
        ax.set_ylabel(f"{unit}{per}")
        if number < len(axes) - 1:
            ax.set_xlabel("")
    return axes


def queue(data: Result | pd.DataFrame, *, link: str | None = None) -> list[Axes]:
    """What a queue did with each packet: delay, drops and marks, backlog, probability.

    ``data`` is a result that has recorded ``queue``, or the frame of its ``queue.csv``; ``link`` is
    the link direction, by default the one with most rows. Returns the axes, from the top.
    """
    found = frame(data.table("queue.csv")) if isinstance(data, Result) else data
    having(found, "sojourn_ms")
    if found.empty:
        raise ValueError("the record of the queue is empty")
    link = str(found["link"].value_counts().idxmax()) if link is None else link
    rows = found[found["link"] == link]
    if rows.empty:
        raise ValueError(f"the record has no link {link!r}, it has {', '.join(sorted(set(found['link'])))}")
    has_probability = rows["probability"].fillna(0).gt(0).any()
    count = 3 if has_probability else 2
    _, grid = plt.subplots(count, 1, sharex=True, squeeze=False, figsize=(7.0, 2.1 * count), layout="constrained")
    axes = [row[0] for row in grid]
    left = rows[rows["action"] == "dequeue"]
    axes[0].plot(
        left["time_s"], left["sojourn_ms"], ".", color=PALETTE[0], markersize=1.5, label="left", rasterized=True
    )
    for action, color, marker in (("drop", PALETTE[4], "x"), ("mark", PALETTE[2], "+")):
        of = rows[rows["action"] == action]
        if not of.empty:
            delay = of["sojourn_ms"].fillna(0)
            axes[0].plot(of["time_s"], delay, marker, color=color, markersize=4, linestyle="", label=f"{action}s")
    axes[0].set_title(f"{link}: delay of each packet", fontsize="medium")
    axes[0].set_ylabel("Delay (ms)")
    axes[0].legend(frameon=False, fontsize="small", markerscale=2)
    axes[1].step(rows["time_s"], rows["backlog_packets"], where="post", color=PALETTE[0], linewidth=0.8)
    axes[1].set_ylabel("Queue length (packets)")
    if has_probability:
        known = rows[rows["probability"].notna()]
        axes[2].plot(known["time_s"], known["probability"], color=PALETTE[3], linewidth=0.9)
        axes[2].set_ylabel("Probability")
    for ax in axes:
        begin_at(ax, "y", 0)
        tidy(ax)
    axes[-1].set_xlabel("Time (s)")
    return axes
