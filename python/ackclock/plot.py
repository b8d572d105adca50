"""Figures for papers, of what the report of the command line draws.

Functions take a result or a data frame, and the axes to draw on (``ax``; new ones without); they
return the axes. Colours are Okabe and Ito's, which people with any colour vision tell apart. They
need matplotlib and pandas: ``pip install 'ackclock[plot]'``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

try:
    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd
except ImportError as error:
    raise ImportError("figures need matplotlib and pandas: pip install 'ackclock[plot]'") from error

from ackclock._results import Result, Sweep, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "PALETTE",
    "backlog",
    "boxes",
    "cdf",
    "cwnd",
    "heatmap",
    "lines",
    "queue",
    "rtt",
    "scatter",
    "series",
    "sojourn",
    "throughput",
    "time_series",
]

PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C6D1F", "#7F7F7F"]
"""The colours of lines, in order."""
_MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
_DASHES = ["-", "--", ":", "-."]

_WORDS = {
    "goodput": "Goodput",
    "throughput": "Throughput",
    "window_throughput": "Throughput (sliding window)",
    "rtt": "RTT",
    "srtt": "Smoothed RTT",
    "fct": "Flow completion time",
    "cwnd": "Congestion window",
    "ssthresh": "Slow start threshold",
    "in_flight": "In flight",
    "sojourn": "Queueing delay",
    "backlog": "Queue length",
    "fairness_jain": "Jain's fairness index",
    "utilization": "Utilization",
    "probability": "Drop or mark probability",
    "p5": "5th percentile",
    "p25": "25th percentile",
    "p50": "median",
    "p75": "75th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "min": "minimum",
    "max": "maximum",
}
_SUFFIX = re.compile(r"_(bps|ms|s|bytes|packets)$")
_PANELS = [
    ("flow", "throughput_bps"),
    ("flow", "goodput_bps"),
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
_COUNTS = {"retransmitted_packets", "dropped_packets", "marked_packets", "lost_packets", "packets", "timeouts"}


def _unit(metric: str, most: float) -> tuple[str, float]:
    """The unit in which values of up to ``most`` are read well, and what they are multiplied by."""
    for part in reversed(metric.split(".")):
        found = _SUFFIX.search(part)
        if found is None:
            continue
        suffix = found.group(1)
        if suffix == "bps":
            return ("Gbit/s", 1e-9) if most >= 1e9 else ("Mbit/s", 1e-6) if most >= 1e6 else ("kbit/s", 1e-3)
        if suffix == "ms":
            return ("s", 1e-3) if most >= 1e4 else ("ms", 1.0)
        if suffix == "s":
            return ("ms", 1e3) if most < 1 else ("s", 1.0)
        if suffix == "bytes":
            return ("MB", 1e-6) if most >= 1e6 else ("kB", 1e-3) if most >= 1e3 else ("bytes", 1.0)
        return "packets", 1.0
    return "", 1.0


def _label(metric: str, unit: str = "") -> str:
    def words(part: str) -> str:
        plain = _SUFFIX.sub("", part)
        return _WORDS.get(part) or _WORDS.get(plain) or plain.replace("_", " ")

    text = ", ".join(words(part) for part in metric.split("."))
    text = text[:1].upper() + text[1:]
    return f"{text} ({unit})" if unit else text


def _most(values: Any) -> float:
    known = np.abs(np.asarray(values, dtype=float))
    known = known[np.isfinite(known)]
    return float(known.max()) if known.size else 0.0


def _axes(ax: Axes | None) -> Axes:
    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
    return ax


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#d1d9e0", linewidth=0.6)
    ax.set_axisbelow(True)


def _legend(ax: Axes, title: str | None = None) -> None:
    handles, _ = ax.get_legend_handles_labels()
    if len(handles) > 1 or (handles and title):
        ax.legend(title=title, frameon=False, fontsize="small")


def _series(data: Result | pd.DataFrame) -> pd.DataFrame:
    found = data.series if isinstance(data, Result) else data
    missing = {"from_s", "to_s", "kind", "id"} - set(found.columns)
    if missing:
        raise ValueError(f"no series of a run: the columns {', '.join(sorted(missing))} are missing")
    return found


def _column(data: pd.DataFrame, name: str) -> pd.DataFrame:
    if name not in data.columns:
        near = [str(column) for column in data.columns if name.split(".")[0].split("_")[0] in str(column)]
        hint = f"; similar ones: {', '.join(near[:8])}" if near else ""
        raise ValueError(f"there is no column {name!r}{hint}")
    return data


def _rows(data: Result | Sweep | pd.DataFrame) -> pd.DataFrame:
    return data if isinstance(data, pd.DataFrame) else data.flows


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
    found = _column(_series(data), metric)
    if ids is None:
        ids = _busy(found) if kind == "link" else list(dict.fromkeys(found.loc[found["kind"] == kind, "id"]))
        if not ids and kind == "link":
            ids = list(dict.fromkeys(found.loc[found["kind"] == kind, "id"]))
    rows = found[(found["kind"] == kind) & found["id"].isin(list(ids))]
    if rows.empty:
        raise ValueError(f"the series has no rows of kind {kind!r}" + (f" with ids {list(ids)}" if ids else ""))
    ax = _axes(ax)
    unit, scale = _unit(metric, _most(rows[metric]))
    for number, name in enumerate(ids):
        of = rows[rows["id"] == name]
        style: dict[str, Any] = {"color": PALETTE[number % 8], "linestyle": _DASHES[number // 8 % 4]}
        ax.plot(of["to_s"], of[metric] * scale, label=name, linewidth=1.2, **style)
    ax.set_xlim(0, float(found["to_s"].max()))
    ax.set_ylim(bottom=0)
    ax.set_xlabel("Time (s)")
    ax.set_ylabel(_label(metric, f"{unit} per interval" if metric.split(".")[-1] in _COUNTS else unit))
    _tidy(ax)
    _legend(ax)
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
            if metric in rows.columns and _most(rows[metric]) > 0 and metric != "goodput_bps":
                metrics.append((kind, metric))
    if not metrics:
        raise ValueError("there is nothing to draw: nothing was sent")
    _, grid = plt.subplots(
        len(metrics), 1, sharex=True, squeeze=False, figsize=(7.0, 1.9 * len(metrics)), layout="constrained"
    )
    axes = [row[0] for row in grid]
    for number, ((kind, metric), ax) in enumerate(zip(metrics, axes, strict=True)):
        series(found, metric, kind=kind, ax=ax)
        unit, _ = _unit(metric, _most(found.loc[found["kind"] == kind, metric]))
        per = " per interval" if metric in _COUNTS else ""
        of = "links" if kind == "link" else "flows"
        title = f"{_label(metric)} of {of}" if metric == "throughput_bps" else _label(metric)
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
    _column(found, "sojourn_ms")
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
    axes[0].plot(left["time_s"], left["sojourn_ms"], ".", color=PALETTE[0], markersize=1.5, label="left", rasterized=True)
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
        ax.set_ylim(bottom=0)
        _tidy(ax)
    axes[-1].set_xlabel("Time (s)")
    return axes


def _groups(data: pd.DataFrame, by: str | None) -> list[tuple[str, pd.DataFrame]]:
    if by is None:
        return [("", data)]
    found = _column(data, by)
    return [(str(name), rows) for name, rows in found.groupby(by, sort=False)]


def boxes(
    data: Result | Sweep | pd.DataFrame,
    metric: str = "goodput_bps",
    *,
    x: str | None = None,
    color: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Box plots of a column: a box for each value of ``x``, next to each other for each of ``color``.

    ``data`` is a result, a sweep (their flows), or any frame of theirs. Whiskers reach to 1.5 times
    the distance of the quartiles; points are beyond.
    """
    found = _column(_rows(data), metric)
    x = ("cc" if "cc" in found.columns else found.columns[0]) if x is None else x
    places = list(dict.fromkeys(str(value) for value in _column(found, x)[x]))
    groups = _groups(found, color)
    unit, scale = _unit(metric, _most(found[metric]))
    ax = _axes(ax)
    width = 0.8 / len(groups)
    for number, (name, rows) in enumerate(groups):
        paint = PALETTE[number % 8]
        for place, value in enumerate(places):
            of = rows.loc[rows[x].astype(str) == value, metric].dropna() * scale
            if of.empty:
                continue
            at = place + (number - (len(groups) - 1) / 2) * width
            ax.boxplot(
                [of.to_numpy()],
                positions=[at],
                widths=width * 0.85,
                patch_artist=True,
                manage_ticks=False,
                boxprops={"facecolor": paint + "40", "edgecolor": paint},
                medianprops={"color": paint, "linewidth": 1.6},
                whiskerprops={"color": paint},
                capprops={"color": paint},
                flierprops={"marker": ".", "markeredgecolor": paint, "markersize": 4},
            )
        if color is not None:
            ax.plot([], [], color=paint, linewidth=5, alpha=0.5, label=name)
    ax.set_xticks(range(len(places)), places)
    ax.set_xlim(-0.6, len(places) - 0.4)
    ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
    ax.set_xlabel(x)
    ax.set_ylabel(_label(metric, unit))
    _tidy(ax)
    ax.grid(False, axis="x")
    _legend(ax, color)
    return ax


def cdf(
    data: Result | Sweep | pd.DataFrame,
    metric: str = "goodput_bps",
    *,
    color: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The share of values of a column that are at most so large, a line for each value of ``color``."""
    found = _column(_rows(data), metric)
    unit, scale = _unit(metric, _most(found[metric]))
    ax = _axes(ax)
    for number, (name, rows) in enumerate(_groups(found, color)):
        values = np.sort(rows[metric].dropna().to_numpy(dtype=float)) * scale
        if not values.size:
            continue
        share = np.arange(1, values.size + 1) / values.size
        style: dict[str, Any] = {"color": PALETTE[number % 8], "linestyle": _DASHES[number // 8 % 4]}
        ax.step(np.r_[values[0], values], np.r_[0.0, share], where="post", label=name, **style)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel(_label(metric, unit))
    ax.set_ylabel("Share of values at most so large")
    _tidy(ax)
    if color is not None:
        _legend(ax, color)
    return ax


def scatter(
    data: Result | Sweep | pd.DataFrame,
    x: str = "rtt_ms.p50",
    y: str = "goodput_bps",
    *,
    color: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One column against another: a point for each row, crosses at means, ellipses of one standard deviation.

    By default delay against throughput, with the better side up and to the left.
    """
    found = _column(_column(_rows(data), x), y)
    color = "cc" if color is None and "cc" in found.columns else color
    (unit_x, scale_x), (unit_y, scale_y) = _unit(x, _most(found[x])), _unit(y, _most(found[y]))
    ax = _axes(ax)
    for number, (name, rows) in enumerate(_groups(found, color)):
        of = rows[[x, y]].dropna()
        if of.empty:
            continue
        paint, marker = PALETTE[number % 8], _MARKERS[number % 8]
        values = np.stack([of[x].to_numpy(dtype=float) * scale_x, of[y].to_numpy(dtype=float) * scale_y])
        ax.scatter(values[0], values[1], s=14, alpha=0.55, color=paint, marker=marker, linewidths=0, label=name)
        center = values.mean(axis=1)
        ax.plot(*center, "+", color=paint, markersize=11, markeredgewidth=2)
        if values.shape[1] > 2:
            turn = np.linspace(0, 2 * np.pi, 90)
            sizes, directions = np.linalg.eigh(np.cov(values))
            circle = np.stack([np.cos(turn), np.sin(turn)])
            ring = directions @ (np.sqrt(np.maximum(sizes, 0))[:, None] * circle) + center[:, None]
            ax.plot(ring[0], ring[1], color=paint, linewidth=1)
    ax.set_xlabel(_label(x, unit_x))
    ax.set_ylabel(_label(y, unit_y))
    _tidy(ax)
    _legend(ax, color)
    return ax


def _numbers(values: pd.Series[Any]) -> pd.Series[Any]:
    """Values of an axis of a sweep as numbers (``"20ms"`` is 20), if all are in the same unit."""
    if pd.api.types.is_numeric_dtype(values):
        return values
    parts = values.astype(str).str.extract(r"^\s*([0-9.eE+-]+)\s*([A-Za-z%/]*)\s*$")
    if parts[0].isna().any() or parts[1].nunique() != 1:
        return values
    return pd.to_numeric(parts[0], errors="coerce")


def _axis_name(data: pd.DataFrame, name: str) -> str:
    units = data[name].astype(str).str.extract(r"^\s*[0-9.eE+-]+\s*([A-Za-z%/]+)\s*$")[0]
    return f"{name} ({units.iloc[0]})" if units.notna().all() and units.nunique() == 1 else name


def lines(
    data: Sweep | pd.DataFrame,
    x: str,
    metric: str = "goodput_bps",
    *,
    color: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Means of a column over an axis of a sweep, a line for each value of ``color``.

    Bars are 95 % confidence intervals of the means (normal approximation), where a point has
    several rows. Values with a unit (``"20ms"``) are numbers if all have the same.
    """
    found = _column(_column(_rows(data), x), metric)
    numbers = _numbers(found[x])
    is_number = pd.api.types.is_numeric_dtype(numbers)
    places = list(dict.fromkeys(found[x].astype(str)))
    unit, scale = _unit(metric, _most(found[metric]))
    ax = _axes(ax)
    for number, (name, rows) in enumerate(_groups(found, color)):
        at = numbers[rows.index] if is_number else rows[x].astype(str).map(places.index)
        of = (rows[metric] * scale).groupby(at).agg(["mean", "std", "count"])
        half = 1.96 * of["std"].fillna(0) / np.sqrt(of["count"])
        style: dict[str, Any] = {"color": PALETTE[number % 8], "marker": _MARKERS[number % 8]}
        ax.errorbar(of.index, of["mean"], yerr=half, markersize=4, linewidth=1.2, capsize=2, label=name, **style)
    if not is_number:
        ax.set_xticks(range(len(places)), places)
    ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
    ax.set_xlabel(_axis_name(found, x))
    ax.set_ylabel(_label(metric, unit))
    _tidy(ax)
    if color is not None:
        _legend(ax, color)
    return ax


def heatmap(
    data: Sweep | pd.DataFrame, x: str, y: str, metric: str = "goodput_bps", *, ax: Axes | None = None
) -> Axes:
    """Means of a column for each pair of values of two axes of a sweep; numbers are in the cells."""
    found = _column(_column(_column(_rows(data), x), y), metric)

    def order(name: str) -> list[str]:
        keys = pd.DataFrame({"text": found[name].astype(str), "key": _numbers(found[name])}).drop_duplicates("text")
        sortable = pd.api.types.is_numeric_dtype(keys["key"])
        return list((keys.sort_values("key") if sortable else keys)["text"])

    columns, rows = order(x), order(y)
    unit, scale = _unit(metric, _most(found[metric]))
    means = (found[metric] * scale).groupby([found[y].astype(str), found[x].astype(str)]).mean().unstack()
    values = means.reindex(index=rows, columns=columns).to_numpy(dtype=float)
    ax = _axes(ax)
    image = ax.imshow(values, cmap="viridis", aspect="auto", origin="lower")
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(_label(metric, unit))
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    if values.size <= 100:
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                ink = "black" if value > middle else "white"
                ax.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize="small", color=ink)
    return ax
