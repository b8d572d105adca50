"""What a learner sees, when it decides, what its actions do, and what it is rewarded for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ackclock import _core

FEATURES: dict[str, str] = dict(_core.features())
"""What a sender sees of an interval: names, and what each is.

Rewards, :class:`Stop` and observations may also name what the network shows of the interval:
``share`` (the learner's part of all bytes that arrived at receivers), ``links.ID.COLUMN`` (with
``links.ID.reverse.COLUMN`` for the way back) and ``flows.ID.COLUMN``, with the columns of ``series.csv``
that are numbers. No sender sees that, so that an agent which observes it cannot be exported.
"""

_FAR = 1e9


@dataclass(frozen=True)
class Feature:
    """A feature by its name (:data:`FEATURES`), and how it is told.

    Its value is multiplied by ``scale``, replaced by ``ln(1 + x)`` if ``log``, ``offset`` is added,
    and it is limited to ``limits``. With ``over`` it is the ``statistic`` (``"mean"``, ``"min"``,
    ``"max"``) of so many intervals, the newest included.
    """

    name: str
    scale: float = 1.0
    log: bool = False
    offset: float = 0.0
    limits: tuple[float, float] = (-_FAR, _FAR)
    over: int | None = None
    statistic: Literal["mean", "min", "max"] = "mean"

    def _json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "measure": self.name,
            "scale": self.scale,
            "log": self.log,
            "offset": self.offset,
            "limits": list(self.limits),
        }
        if self.over is not None:
            found |= {"over": self.over, "statistic": self.statistic}
        return found


@dataclass(frozen=True)
class Action:
    """What an action does: a number from ``-limit`` to ``limit`` sets a rate or a window.

    Use :meth:`rate`, :meth:`window`, :meth:`step` or :meth:`factor`.
    """

    target: Literal["rate", "window"]
    map: Literal["level", "step", "power"]
    least: float
    most: float
    limit: float = 1.0
    delta: float | None = None
    base: float | None = None

    @staticmethod
    def rate(least_bps: float, most_bps: float) -> Action:
        """The pacing rate: -1 is ``least_bps``, 1 ``most_bps``, on a logarithmic scale between."""
        return Action("rate", "level", least_bps, most_bps)

    @staticmethod
    def window(least: float, most: float) -> Action:
        """The congestion window in segments: -1 is ``least``, 1 ``most``, on a logarithmic scale between."""
        return Action("window", "level", least, most)

    @staticmethod
    def step(
        target: Literal["rate", "window"] = "rate",
        *,
        delta: float = 0.025,
        limit: float = 1.0,
        least: float | None = None,
        most: float | None = None,
    ) -> Action:
        """Multiplies the rate or the window by ``1 + delta * a``, or divides it by ``1 - delta * a`` below zero."""
        least, most = _bounds(target, least, most)
        return Action(target, "step", least, most, limit, delta=delta)

    @staticmethod
    def factor(
        target: Literal["rate", "window"] = "window",
        *,
        base: float = 2.0,
        limit: float = 1.0,
        least: float | None = None,
        most: float | None = None,
    ) -> Action:
        """Multiplies the rate or the window by ``base ** a``."""
        least, most = _bounds(target, least, most)
        return Action(target, "power", least, most, limit, base=base)

    def _json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


def _bounds(target: str, least: float | None, most: float | None) -> tuple[float, float]:
    usual = (10e3, 100e9) if target == "rate" else (2.0, 1e6)
    return (usual[0] if least is None else least, usual[1] if most is None else most)


@dataclass(frozen=True)
class RoundTrips:
    """A decision after ``factor`` smoothed round-trip times, or after ``least`` if that is longer."""

    factor: float = 1.0
    least: str = "1ms"


Decide = str | RoundTrips
"""When to decide: a time (``"10ms"``), :class:`RoundTrips`, ``"round"`` (once in a round trip) or ``"ack"``."""


@dataclass(frozen=True)
class Agent:
    """What a learner sees, when it decides, what its actions do, and what it is rewarded for.

    ``features`` are names or :class:`Feature`; an observation has those of the last ``history``
    intervals, the oldest first. ``reward`` is a list of names or features with their weights.
    ``action`` is one, or one for the rate and one for the window: actions then have two numbers.
    ``beneath`` names a controller whose window the actions change and which goes on between them.

    ``headroom`` bounds what a policy that floods the path costs: actions set at most so many times the
    highest throughput of any interval so far, as a rate, or what that sends in a smoothed RTT, as a
    window; before anything got through, the initial window. None leaves only the bounds of the action.
    """

    decide: Decide = "10ms"
    action: Action | Sequence[Action] = field(default_factory=Action.step)
    features: Sequence[str | Feature] = ("latency_inflation", "latency_ratio", "send_ratio")
    reward: Sequence[tuple[str | Feature, float]] = (
        ("throughput_bps", 1e-6),
        ("queueing_delay_s", -10.0),
        ("loss_rate", -10.0),
    )
    history: int = 1
    beneath: str | None = None
    headroom: float | None = 4.0

    def with_(self, **changes: Any) -> Agent:
        """The same with other values."""
        return replace(self, **changes)

    def _features(self) -> list[Feature]:
        return [found if isinstance(found, Feature) else Feature(found) for found in self.features]

    def _actions(self) -> list[Action]:
        return [self.action] if isinstance(self.action, Action) else list(self.action)

    def _json(self) -> dict[str, Any]:
        """What a policy that is exported has in common with it."""
        decide: Any
        if isinstance(self.decide, RoundTrips):
            decide = {"round_trip_times": {"factor": self.decide.factor, "least": self.decide.least}}
        elif self.decide in ("round", "ack"):
            decide = self.decide
        else:
            decide = {"every": self.decide}
        return {
            "decide": decide,
            "action": found[0] if len(found := [action._json() for action in self._actions()]) == 1 else found,
            "headroom": self.headroom,
            "observe": [found._json() for found in self._features()],
            "history": self.history,
            "beneath": self.beneath,
        }

    def _reward_json(self) -> list[dict[str, Any]]:
        terms = []
        for found, weight in self.reward:
            feature = found if isinstance(found, Feature) else Feature(found)
            terms.append({"feature": feature._json(), "weight": weight})
        return terms

    def _limits(self) -> tuple[list[float], list[float]]:
        low, high = zip(*(found.limits for found in self._features()), strict=True) if self.features else ((), ())
        return list(low) * self.history, list(high) * self.history


def aurora(history: int = 10) -> Agent:
    """Aurora (Jay et al., ICML 2019; PCC-RL): rates by steps, with ten intervals of three ratios.

    Departures: the smoothed RTT stands for the mean one in the length of an interval; actions are
    limited to 10 both ways, and what they set to :attr:`Agent.headroom`.
    """
    return Agent(
        decide=RoundTrips(0.5, "1ms"),
        action=Action.step("rate", delta=0.025, limit=10.0),
        features=(
            Feature("latency_inflation", limits=(-1.0, 10.0)),
            Feature("latency_ratio", limits=(1.0, 10_000.0)),
            Feature("send_ratio", limits=(0.0, 1000.0)),
        ),
        reward=((Feature("throughput_bps", scale=1 / 12_000), 0.01), ("rtt_s", -1.0), ("loss_rate", -2.0)),
        history=history,
    )


def orca(beneath: str = "cubic") -> Agent:
    """Orca (Abbasloo et al., SIGCOMM 2020): four to the power of the action times the window of a CUBIC beneath.

    Departures: its running normalisation by mean and deviation is left to the trainer
    (stable-baselines3's ``VecNormalize``); intervals are 20 ms.
    """
    return Agent(
        decide="20ms",
        action=Action.factor("window", base=4.0, limit=1.0),
        features=(
            Feature("throughput_ratio", limits=(0.0, 1.0)),
            Feature("pacing_ratio", limits=(0.0, 10.0)),
            Feature("loss_rate", scale=5.0, limits=(0.0, 5.0)),
            Feature("samples_ratio", limits=(0.0, 10.0)),
            Feature("interval_s", limits=(0.0, 10.0)),
            Feature("rtt_ratio", limits=(0.0, 1.0)),
            Feature("delay_margin", limits=(0.0, 1.0)),
        ),
        reward=((Feature("orca_reward", limits=(-10.0, 1.0)), 1.0),),
        history=1,
        beneath=beneath,
    )


def sage() -> Agent:
    """Sage (Yen et al., SIGCOMM 2023): two to the power of the action times the window, with 69 features.

    The windows of its statistics are 10, 200 and 1000 intervals. Departures: its reward is divided
    by the known rate of the path, here by the highest throughput so far; the state of Linux's loss
    recovery is 0 or 1; rates are those of one interval instead of a hundred, and so are their highest ones.
    """
    windowed = (
        Feature("rtt_s", scale=10.0),
        Feature("delivery_rate_bps", scale=1e-8),
        Feature("rtt_ratio"),
        Feature("rtt_deviation_s", scale=1000.0),
        Feature("in_flight_packets", scale=1e-3),
        Feature("lost_packets", scale=1e-2),
    )
    statistics: tuple[Literal["mean", "min", "max"], ...] = ("mean", "min", "max")
    moving = [
        replace(feature, over=over, statistic=statistic)
        for feature in windowed
        for over in (10, 200, 1000)
        for statistic in statistics
    ]
    now = [
        Feature("srtt_s", scale=10.0),
        Feature("rtt_deviation_s", scale=1000.0),
        Feature("delivery_rate_bps", scale=1e-8),
        Feature("recovery"),
    ]
    last = [
        Feature("interval_ratio"),
        Feature("rtt_ratio"),
        Feature("loss_bps", scale=1e-8),
        Feature("throughput_ratio"),
        Feature("throughput_change"),
        Feature("bdp_ratio"),
        Feature("throughput_bps", scale=1e-8),
        Feature("window_use"),
        Feature("max_throughput_change"),
        Feature("max_throughput_bps", scale=1e-8),
        Feature("action"),
    ]
    limited = [replace(feature, limits=(-1e3, 1e3)) for feature in (*now, *moving, *last)]
    return Agent(
        decide="20ms",
        action=Action.factor("window", base=2.0, limit=2.0),
        features=limited,
        reward=(("sage_reward", 1.0),),
    )


PRESETS: dict[str, Callable[[], Agent]] = {"aurora": aurora, "orca": orca, "sage": sage}
"""Agents by name."""


def agent_of(found: str | Agent) -> Agent:
    """An agent, or the preset of this name."""
    if isinstance(found, Agent):
        return found
    if found not in PRESETS:
        raise ValueError(f"agent: found {found!r}, expected an Agent or one of {', '.join(PRESETS)}")
    return PRESETS[found]()


@dataclass(frozen=True)
class Distribution:
    """What a value of the scenario is drawn from: use one of the functions below it."""

    _json: Mapping[str, Any]


def uniform(low: str | float, high: str | float) -> Distribution:
    """Between two values, as the scenario has them: ``uniform("1ms", "100ms")``."""
    return Distribution({"uniform": [low, high]})


def log_uniform(low: str | float, high: str | float) -> Distribution:
    """Between two values, with equal chance for equal factors: ``log_uniform("1mbit", "100mbit")``."""
    return Distribution({"log_uniform": [low, high]})


def integer(low: int, high: int) -> Distribution:
    """A whole number, both bounds included."""
    return Distribution({"integer": [low, high]})


def normal(mean: str | float, deviation: str | float, low: str | float, high: str | float) -> Distribution:
    """A normal distribution, limited to its bounds."""
    return Distribution({"normal": {"mean": mean, "deviation": deviation, "least": low, "most": high}})


def choice(values: Iterable[Any]) -> Distribution:
    """One of several values, each with equal chance."""
    from ackclock import _toml

    return Distribution({"choice": [_toml.value(value, "choice") for value in values]})


@dataclass(frozen=True)
class Stop:
    """Ends an episode: a feature is above or below a bound in so many intervals in a row, after so many."""

    feature: str
    above: float | None = None
    below: float | None = None
    intervals: int = 1
    after: int = 0


def settings(
    agents: Mapping[str, Agent], watch: bool, randomise: Mapping[str, Distribution] | None, stop: Iterable[Stop], max_steps: int | None
) -> str:
    """What the compiled part is told of an environment."""
    for path, distribution in (randomise or {}).items():
        if not isinstance(distribution, Distribution):
            raise TypeError(f"randomise: {path}: found {distribution!r}, expected a distribution such as uniform(1, 2)")
    if max_steps is not None and max_steps < 1:
        raise ValueError(f"max_steps: found {max_steps}, expected at least 1")
    ends = [
        {name: getattr(end, name) for name in ("above", "below", "intervals", "after")} | {"measure": end.feature}
        for end in stop
    ]
    told = {
        "agents": [
            {"name": name, "agent": agent._json(), "reward": agent._reward_json()} for name, agent in agents.items()
        ],
        "watch": watch,
        "stop": ends,
        "max_steps": max_steps,
        "randomise": [[path, found._json] for path, found in (randomise or {}).items()],
    }
    try:
        return json.dumps(told, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the agent or the environment holds what JSON cannot: {error}") from None


def finite(value: float) -> float:
    """A reward of a function, which has to be a number."""
    found = float(value)
    if not math.isfinite(found):
        raise ValueError(f"the reward function gave {found}, expected a finite number")
    return found
