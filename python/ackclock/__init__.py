"""A TCP and AQM laboratory: scenarios, sweeps and figures.

>>> import ackclock
>>> result = ackclock.run("scenarios/smoke/two-flows-pie.toml", record=["series"])
>>> result.flows[["id", "goodput_bps", "rtt_ms.p50"]]
>>> ackclock.plot.time_series(result)

:func:`run` runs a scenario once, :func:`sweep` does all runs of a sweep on all cores, :func:`read`
reads what the command line wrote, :func:`load` only checks, :mod:`ackclock.plot` draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ackclock._core import Scenario, Table, __version__
from ackclock._errors import Problem, RunError, ScenarioError, ScenarioWarning
from ackclock._read import read
from ackclock._results import Records, Result, Sweep
from ackclock._run import load, run, sweep
from ackclock._stored import StoredSweep

if TYPE_CHECKING:
    from ackclock import plot

__all__ = [
    "Problem",
    "Records",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "StoredSweep",
    "Sweep",
    "Table",
    "__version__",
    "load",
    "plot",
    "read",
    "run",
    "sweep",
]


def __getattr__(name: str) -> Any:
    # matplotlib is loaded when something is drawn.
    if name == "plot":
        import importlib

        return importlib.import_module("ackclock.plot")
    raise AttributeError(f"module 'ackclock' has no attribute {name!r}")
