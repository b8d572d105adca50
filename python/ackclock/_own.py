"""Congestion controllers and queue disciplines that are classes of Python."""

from __future__ import annotations

import atexit
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ackclock import _core, _toml
from ackclock._core import CongestionControl, Controller, QueueDisc

Controllers: TypeAlias = Mapping[str, type[CongestionControl]] | None
"""Classes by the names that scenarios know them by: ``{"mine": Mine}`` for ``cc = "mine"``."""
Queues: TypeAlias = Mapping[str, type[QueueDisc]] | None
"""The same for ``queue = "mine"``."""

# The interpreter ends only when no run calls it any more.
atexit.register(_core.shut_down)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a class; see :func:`parameter`."""

    default: float
    least: float
    most: float

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        # An instance of a run has the value itself; one that somebody has made by hand, the default.
        return self if instance is None else self.default


def parameter(default: float, least: float, most: float) -> Any:
    """A number that scenarios may set, for the body of a class.

    >>> class Mine(ackclock.CongestionControl):
    ...     beta: float = ackclock.parameter(0.7, 0.1, 0.99)

    ``cc = { kind = "mine", beta = 0.8 }`` sets it, and so do ``set`` and sweeps; ``self.beta`` is its
    value, a float, also in ``__init__``. ``least`` and ``most`` are the values that it may have.

    Raises TypeError for what is no number, ValueError if they are not finite and in order.
    """
    numbers = []
    for name, number in (("default", default), ("least", least), ("most", most)):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise TypeError(f"parameter: {name}: found {number!r}, expected a number")
        numbers.append(float(number))
    of = Parameter(*numbers)
    if not all(map(math.isfinite, numbers)) or not of.least <= of.default <= of.most:
        raise ValueError(f"parameter: {default} is not from {least} to {most}: expected finite numbers in order")
    return of


def own(controllers: Controllers, queues: Queues) -> _core.Own | None:
    """What the compiled part is given of the classes."""
    if not controllers and not queues:
        return None
    return _core.Own(
        _listed(controllers, "controllers", CongestionControl), _listed(queues, "queues", QueueDisc)
    )


def _listed(classes: Any, argument: str, base: type) -> list[tuple[str, Any, list[tuple[str, float, float, float]]]]:
    if classes is None:
        return []
    if not isinstance(classes, Mapping):
        raise TypeError(f"{argument}: found {classes!r}, expected a dict of names and classes")
    for name in classes:
        if not isinstance(name, str):
            raise TypeError(f"{argument}: found the name {name!r}, expected a string")
    for name, class_ in classes.items():
        _check_hooks(f"{argument}[{name!r}]", class_, base)
    return [(name, class_, _parameters(class_)) for name, class_ in classes.items()]


def _check_hooks(where: str, class_: Any, base: type) -> None:
    """Refuses a method whose name looks like that of a hook that does not exist: nothing would call it."""
    if not isinstance(class_, type) or not issubclass(class_, base):
        return
    known = [name for name in dir(base) if not name.startswith("_")]
    own = (vars(above) for above in class_.__mro__ if issubclass(above, base) and above is not base)
    for name, value in ((name, value) for names in own for name, value in names.items()):
        if name in known or name.startswith("_") or not callable(value):
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if near or name.startswith("on_"):
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"{where}: {class_.__name__}.{name} is no hook of {base.__name__}, so nothing calls it{hint}")


def _parameters(class_: Any) -> list[tuple[str, float, float, float]]:
    """The parameters of a class, those of its bases first."""
    found: dict[str, Parameter] = {}
    for base in reversed(getattr(class_, "__mro__", ())):
        for name, value in vars(base).items():
            if isinstance(value, Parameter):
                found[name] = value
            else:
                found.pop(name, None)
    return [(name, of.default, of.least, of.most) for name, of in found.items()]


def cc(kind: str, *, host: str | None = None, seed: int = 0, **parameters: Any) -> Controller:
    """A built-in controller, for a class that contains one.

    ``kind``, ``host`` and ``parameters`` are as in a scenario: ``ackclock.cc("cubic", hystart="hystart++")``.
    Its hooks are those of :class:`CongestionControl`. What it asks for beyond reactions is up to the
    class: one that contains BBR asks for ``delivery_rate`` and ``whole_control`` itself. ``seed`` is for
    what it decides by chance; ``self.random.getrandbits(63)`` gives each flow its own.

    Raises ScenarioError for an unknown kind or wrong parameters.
    """
    flow = {"id": "f", "path": ["a"], "cc": {"kind": kind, **parameters}} | ({"host": host} if host else {})
    scenario = {
        "schema": 1,
        "run": {"duration": "1s"},
        "links": {"a": {"rate": "1mbit", "delay": "1ms"}},
        "flows": [flow],
    }
    return Controller.of_scenario(_core.Scenario("<cc>", _toml.document(scenario), []), seed)
