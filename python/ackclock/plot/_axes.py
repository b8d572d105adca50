"""Units, labels, colours and axes: what figures have in common."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator

from ackclock import _core
from ackclock._results import Result, Sweep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C6D1F", "#7F7F7F"]
"""The colours of lines, in order."""
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
DASHES = ["-", "--", ":", "-."]

_METRICS: dict[str, Any] = json.loads(_core.figures())
"""Titles and units of metrics, as the report has them."""
_TITLES: dict[str, str] = _METRICS["titles"]
_SERIES: dict[str, str] = _METRICS["series"]
_SCALES: dict[str, list[tuple[float, str, float]]] = _METRICS["scales"]
_SUFFIX = re.compile(r"_(bps|ms|s|bytes|packets)$")
COUNTS = {"retransmitted_packets", "dropped_packets", "marked_packets", "lost_packets", "packets", "timeouts"}


def unit_of(metric: str, most: float) -> tuple[str, float]:
    """The unit in which values of up to ``most`` are read well, and what they are multiplied by."""
    for part in reversed(metric.split(".")):
        found = _SUFFIX.search(part)
        if found is None:
            continue
        scales = _SCALES.get(found.group(1), [(0.0, "packets", 1.0)])
        return next(((unit, scale) for least, unit, scale in scales if most >= least), scales[-1][1:])
    return "", 1.0


_UNITS: WeakKeyDictionary[Axes, dict[str, tuple[str, float]]] = WeakKeyDictionary()
"""The units that axes have been drawn in."""


def unit_on(ax: Axes, way: Literal["x", "y"], metric: str, most: float) -> tuple[str, float]:
    """The same as :func:`unit_of`, but that of the panels with which the axis is shared, if they
    measure the same."""
    own = unit_of(metric, most)
    shared = ax.get_shared_x_axes() if way == "x" else ax.get_shared_y_axes()
    known = (_UNITS.get(other, {}).get(way) for other in shared.get_siblings(ax))
    same = {unit_of(metric, size)[0] for size in (0.5, 1.0, 1e3, 1e4, 1e6, 1e9)}
    found = next((unit for unit in known if unit is not None and unit[0] in same), own)
    _UNITS.setdefault(ax, {})[way] = found
    return found


def begin_at(ax: Axes, way: Literal["x", "y"], value: float) -> None:
    """Has an axis reach to a value, and not beyond unless data do. Its limits go on following the
    data, those of panels that share it too."""
    at = (value, 0.0) if way == "x" else (0.0, value)
    ax.update_datalim([at], updatex=way == "x", updatey=way == "y")
    for artist in [*ax.lines, *ax.patches, *ax.collections][:1]:
        getattr(artist.sticky_edges, way).append(value)
    ax.autoscale_view(scalex=way == "x", scaley=way == "y")


def places_on(ax: Axes, way: Literal["x", "y"], values: Iterable[str]) -> list[str]:
    """The names at the places 0, 1, ... of an axis: first those that it has, if it is shared or was
    drawn on."""
    axis = ax.xaxis if way == "x" else ax.yaxis
    fixed = isinstance(axis.get_major_locator(), FixedLocator)
    known = [label.get_text() for label in axis.get_ticklabels()] if fixed else []
    found = list(dict.fromkeys([*known, *values]))
    axis.set_ticks(range(len(found)), found)
    return found


def label_of(metric: str, unit: str = "") -> str:
    def words(part: str) -> str:
        return _TITLES.get(part) or _SUFFIX.sub("", part).replace("_", " ")

    text = _SERIES.get(metric) or ", ".join(words(part) for part in metric.split("."))
    text = text[:1].upper() + text[1:]
    return f"{text} ({unit})" if unit else text


def most_of(values: Any) -> float:
    known = np.abs(np.asarray(values, dtype=float))
    known = known[np.isfinite(known)]
    return float(known.max()) if known.size else 0.0


def axes_or_new(ax: Axes | None) -> Axes:
    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
    return ax


def tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#d1d9e0", linewidth=0.6)
    ax.set_axisbelow(True)


def legend(ax: Axes, title: str | None = None) -> None:
    handles, _ = ax.get_legend_handles_labels()
    if len(handles) > 1 or (handles and title):
        ax.legend(title=title, frameon=False, fontsize="small")


def having(data: pd.DataFrame, name: str) -> pd.DataFrame:
    if name not in data.columns:
        near = [str(column) for column in data.columns if name.split(".")[0].split("_")[0] in str(column)]
        hint = f"; similar ones: {', '.join(near[:8])}" if near else ""
        raise ValueError(f"there is no column {name!r}{hint}")
    return data


_QUANTITIES = {"bit/s": "_bps", "s": "_s", "B": "_bytes", "p": "_packets"}


def numbers_of(data: pd.DataFrame, name: str) -> tuple[pd.Series[Any], str]:
    """A column, parameters in the unit in which they are read well, and this unit."""
    units = data[f"{name} unit"].dropna().tolist() if f"{name} unit" in data.columns else []
    if not units or not pd.api.types.is_numeric_dtype(data[name]):
        return data[name], ""
    unit, scale = unit_of(name + _QUANTITIES[units[0]], most_of(data[name]))
    return data[name] * scale, unit


def texts_of(data: pd.DataFrame, name: str) -> pd.Series[str]:
    """The values of a column as figures call them."""
    if f"{name} label" in data.columns:
        return data[f"{name} label"].astype(str)
    values, unit = numbers_of(data, name)
    return values.map(lambda value: f"{value:g} {unit}") if unit else values.astype(str)


def rows_of(data: Result | Sweep | pd.DataFrame) -> pd.DataFrame:
    return data if isinstance(data, pd.DataFrame) else data.flows
