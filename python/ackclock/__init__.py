"""A TCP and AQM laboratory: scenarios, sweeps and figures.

>>> import ackclock
>>> result = ackclock.run("scenarios/smoke/two-flows-pie.toml", record=["series"])
>>> result.flows[["id", "goodput_bps", "rtt_ms.p50"]]
>>> ackclock.plot.time_series(result)

:func:`run` runs a scenario once, :func:`sweep` does all runs of a sweep on all cores, :func:`read`
reads what the command line wrote, :func:`load` only checks, :func:`scenarios` lists
those that come with the package, :mod:`ackclock.plot` draws. Subclasses of
:class:`CongestionControl` and :class:`QueueDisc` are controllers and queues of one's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ackclock._core import (
    Ack,
    Arrival,
    CongestionControl,
    Controller,
    Flight,
    Lost,
    NotBefore,
    Packet,
    QueueDisc,
    RateSample,
    Scenario,
    Sent,
    Signal,
    Subflow,
    Table,
    Verdict,
    __version__,
)
from ackclock._errors import Problem, RunError, ScenarioError, ScenarioWarning
from ackclock._own import cc, parameter
from ackclock._read import read
from ackclock._results import Records, Result, Sweep
from ackclock._run import load, run, sweep
from ackclock._scenarios import scenarios
from ackclock._stored import StoredSweep

if TYPE_CHECKING:
    from ackclock import plot

__all__ = [
    "Ack",
    "Arrival",
    "CongestionControl",
    "Controller",
    "Flight",
    "Lost",
    "NotBefore",
    "Packet",
    "Problem",
    "QueueDisc",
    "RateSample",
    "Records",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Sent",
    "Signal",
    "StoredSweep",
    "Subflow",
    "Sweep",
    "Table",
    "Verdict",
    "__version__",
    "cc",
    "load",
    "parameter",
    "plot",
    "read",
    "run",
    "scenarios",
    "sweep",
]


def __getattr__(name: str) -> Any:
    # matplotlib is loaded when something is drawn.
    if name == "plot":
        import importlib

        return importlib.import_module("ackclock.plot")
    raise AttributeError(f"module 'ackclock' has no attribute {name!r}")
