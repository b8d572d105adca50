"""Distributions, and results over the axes of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ackclock._results import Result, Sweep
from ackclock.plot._axes import (
    DASHES,
    MARKERS,
    PALETTE,
    axes_or_new,
    begin_at,
    having,
    label_of,
    legend,
    most_of,
    numbers_of,
    places_on,
    rows_of,
    texts_of,
    tidy,
    unit_of,
    unit_on,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _groups(data: pd.DataFrame, by: str | None) -> list[tuple[str, pd.DataFrame]]:
    if by is None:
        return [("", data)]
    found = having(data, by)
    return [(str(name), rows) for name, rows in found.groupby(texts_of(found, by), sort=False)]


def boxes(
    data: Result | Sweep | pd.DataFrame,
    metric: str = "goodput_bps",
    *,
    x: str | None = None,
    color: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Box plots of a column: a box for each value of ``x``, next to each other for each of ``color``.

    ``data`` is a result, a sweep (their flows), or any frame of theirs. Whiskers reach from the
    smallest to the largest value, as on the report's page.
    """
    found = having(rows_of(data), metric)
    x = ("cc" if "cc" in found.columns else found.columns[0]) if x is None else x
    of_x = texts_of(having(found, x), x)
    groups = _groups(found, color)
    ax = axes_or_new(ax)
    unit, scale = unit_on(ax, "y", metric, most_of(found[metric]))
    places = places_on(ax, "x", of_x)
    width = 0.8 / len(groups)
    for number, (name, rows) in enumerate(groups):
        paint = PALETTE[number % 8]
        for place, value in enumerate(places):
            of = rows.loc[of_x[rows.index] == value, metric].dropna() * scale
            if of.empty:
                continue
            at = place + (number - (len(groups) - 1) / 2) * width
            ax.boxplot(
                [of.to_numpy()],
                positions=[at],
                widths=width * 0.85,
                whis=(0, 100),
                patch_artist=True,
                manage_ticks=False,
                boxprops={"facecolor": paint + "40", "edgecolor": paint},
                medianprops={"color": paint, "linewidth": 1.6},
                whiskerprops={"color": paint},
                capprops={"color": paint},
            )
        if color is not None:
            ax.plot([], [], color=paint, linewidth=5, alpha=0.5, label=name)
    ax.set_xlim(-0.6, len(places) - 0.4)
    begin_at(ax, "y", 0)
    ax.set_xlabel(x)
    ax.set_ylabel(label_of(metric, unit))
    tidy(ax)
    ax.grid(False, axis="x")
    legend(ax, color)
    return ax


def cdf(
    data: Result | Sweep | pd.DataFrame,
    metric: str = "goodput_bps",
    *,
    color: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The share of values of a column that are at most so large, a line for each value of ``color``."""
    found = having(rows_of(data), metric)
    ax = axes_or_new(ax)
    unit, scale = unit_on(ax, "x", metric, most_of(found[metric]))
    for number, (name, rows) in enumerate(_groups(found, color)):
        values = np.sort(rows[metric].dropna().to_numpy(dtype=float)) * scale
        if not values.size:
            continue
        share = np.arange(1, values.size + 1) / values.size
        style: dict[str, Any] = {"color": PALETTE[number % 8], "linestyle": DASHES[number // 8 % 4]}
        ax.step(np.r_[values[0], values], np.r_[0.0, share], where="post", label=name, **style)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel(label_of(metric, unit))
    ax.set_ylabel("Share of values at most so large")
    tidy(ax)
    if color is not None:
        legend(ax, color)
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
    found = having(having(rows_of(data), x), y)
    color = "cc" if color is None and "cc" in found.columns else color
    ax = axes_or_new(ax)
    (unit_x, scale_x), (unit_y, scale_y) = (
        unit_on(ax, "x", x, most_of(found[x])),
        unit_on(ax, "y", y, most_of(found[y])),
    )
    for number, (name, rows) in enumerate(_groups(found, color)):
        of = rows[[x, y]].dropna()
        if of.empty:
            continue
        paint, marker = PALETTE[number % 8], MARKERS[number % 8]
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
    ax.set_xlabel(label_of(x, unit_x))
    ax.set_ylabel(label_of(y, unit_y))
    tidy(ax)
    legend(ax, color)
    return ax


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
    several rows.
    """
    found = having(having(rows_of(data), x), metric)
    (numbers, unit_x), names = numbers_of(found, x), texts_of(found, x)
    is_number = pd.api.types.is_numeric_dtype(numbers)
    ax = axes_or_new(ax)
    unit, scale = unit_on(ax, "y", metric, most_of(found[metric]))
    places = [] if is_number else places_on(ax, "x", names)
    for number, (name, rows) in enumerate(_groups(found, color)):
        at = numbers[rows.index] if is_number else names[rows.index].map(places.index)
        of = (rows[metric] * scale).groupby(at).agg(["mean", "std", "count"])
        half = 1.96 * of["std"].fillna(0) / np.sqrt(of["count"])
        style: dict[str, Any] = {"color": PALETTE[number % 8], "marker": MARKERS[number % 8]}
        ax.errorbar(of.index, of["mean"], yerr=half, markersize=4, linewidth=1.2, capsize=2, label=name, **style)
    begin_at(ax, "y", 0)
    ax.set_xlabel(f"{x} ({unit_x})" if unit_x else x)
    ax.set_ylabel(label_of(metric, unit))
    tidy(ax)
    if color is not None:
        legend(ax, color)
    return ax


def heatmap(data: Sweep | pd.DataFrame, x: str, y: str, metric: str = "goodput_bps", *, ax: Axes | None = None) -> Axes:
    """Means of a column for each pair of values of two axes of a sweep; numbers are in the cells."""
    found = having(having(having(rows_of(data), x), y), metric)

    def order(name: str) -> list[str]:
        keys = pd.DataFrame({"text": texts_of(found, name), "key": found[name]}).drop_duplicates("text")
        sortable = pd.api.types.is_numeric_dtype(keys["key"])
        return list((keys.sort_values("key") if sortable else keys)["text"])

    ax = axes_or_new(ax)
    columns, rows = places_on(ax, "x", order(x)), places_on(ax, "y", order(y))
    unit, scale = unit_of(metric, most_of(found[metric]))
    means = (found[metric] * scale).groupby([texts_of(found, y).rename("y"), texts_of(found, x).rename("x")]).mean().unstack()
    values = means.reindex(index=rows, columns=columns).to_numpy(dtype=float)
    image = ax.imshow(values, cmap="viridis", aspect="auto", origin="lower")
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(label_of(metric, unit))
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    if values.size <= 100:
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                ink = "black" if value > middle else "white"
                ax.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize="small", color=ink)
    return ax
