"""Figures for papers, of what the report of the command line draws.

Functions take a result or a data frame, and the axes to draw on (``ax``; new ones without); they
return the axes. Colours are Okabe and Ito's, which people with any colour vision tell apart. They
need matplotlib and pandas: ``pip install matplotlib pandas pyarrow``.
"""

from __future__ import annotations

try:
    from ackclock.plot._axes import PALETTE
    from ackclock.plot._distributions import boxes, cdf, heatmap, lines, scatter
    from ackclock.plot._time import backlog, cwnd, queue, rtt, series, sojourn, throughput, time_series
except ImportError as error:
    raise ImportError("figures need matplotlib and pandas: pip install matplotlib pandas pyarrow") from error

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
