"""Environments of Gymnasium over the simulator."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ackclock import _toml
from ackclock._core import Environments
from ackclock._own import Controllers, Queues, own
from ackclock._results import Result
from ackclock.gym._agent import FEATURES, Agent, Distribution, Stop, agent_of, finite, settings

Floats = npt.NDArray[np.float32]
Features = Mapping[str, float]
Scenario = str | os.PathLike[str] | Mapping[str, Any]

Agents = str | Agent | Mapping[str, str | Agent]
"""An agent or the name of a preset; or flows that learn, each with an agent of its own."""

_NAMES = list(FEATURES)


class Snapshot(NamedTuple):
    """Where an :class:`Env` stood; it can be pickled."""

    at: tuple[int, int, bool, bytes]
    """The seed, the number of the episode since that was given, whether there was one, and the actions."""
    random: Any
    """The state of the environment's ``np_random``; None before it was used."""


def _agents(agent: Agents, learners: Sequence[str] | None) -> tuple[dict[str, Agent], dict[str, str]]:
    """Agents by their names, and what flows learn with which one."""
    if isinstance(agent, Mapping):
        if not agent:
            raise ValueError("agent: expected at least one flow with its agent")
        others = [flow for flow in learners or () if flow not in agent]
        if others:
            raise ValueError(f"learners: {others[0]!r} has no agent, and agents are given by flows")
        return {flow: agent_of(found) for flow, found in agent.items()}, {flow: flow for flow in agent}
    return {"": agent_of(agent)}, dict.fromkeys(learners or (), "")


def _core(
    scenario: Scenario,
    learners: Mapping[str, str],
    overrides: Mapping[str, Any] | Iterable[str] | None,
    told: str,
    count: int,
    threads: int,
    autoreset: str,
    results: bool,
    controllers: Controllers,
    queues: Queues,
) -> Environments:
    pairs = _toml.overrides(overrides)
    for flow, name in learners.items():
        external: dict[str, Any] = {"kind": "external"} | ({"agent": name} if name else {})
        pairs.append(("learners", f"flows.{flow}.cc={_toml.value(external, 'learners')}"))
    if isinstance(scenario, Mapping):
        name, text, folder = "<dict>", _toml.document(scenario), ""
    else:
        path = Path(scenario)
        name, text, folder = str(path), path.read_text(encoding="utf-8"), str(path.parent)
    classes = own(controllers, queues)
    return Environments(name, text, folder, pairs, told, count, threads, autoreset, results, classes)


def _view(core: Environments, name: str, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    return np.frombuffer(core.buffer(name), dtype=dtype).reshape(shape)


def _spaces(agent: Agent) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Of one learner."""
    low, high = (np.asarray(bounds, dtype=np.float32) for bounds in agent._limits())
    limit = np.asarray([action.limit for action in agent._actions()], dtype=np.float32)
    return (
        gymnasium.spaces.Box(low, high, dtype=np.float32),
        gymnasium.spaces.Box(-limit, limit, dtype=np.float32),
    )


class Env(gymnasium.Env[Any, Any]):
    """A run of a scenario in which flows learn.

    ``scenario`` is a file or a dict, as for :func:`ackclock.run`; flows with ``cc = "external"``
    learn, and those that ``learners`` names. ``agent`` is an :class:`~ackclock.gym.Agent`, or the
    name of a preset. ``randomise`` has a distribution for each path whose value is drawn anew for
    each episode, ``stop`` the conditions that end one early. With several learners, observations
    have the shape ``(learners, n)``, actions ``(learners, k)``, and the reward is the mean of
    theirs; ``info["rewards"]`` has each. Where ``randomise`` draws how many learners there are, rows
    are those of most; one that an episode lacks has an observation of zeros, decides nothing, and is
    False in ``info["present"]``.

    With a dict of flows and their agents in place of ``agent``, these flows learn, each with its own:
    observations and actions are then dicts by :attr:`flows` (spaces ``Dict``).

    ``observe`` and ``reward`` may be functions of the features of the last interval, by their names
    (:data:`~ackclock.gym.FEATURES`, and what the network shows), in place of those of the agent;
    ``observe`` needs ``observation_space`` for one learner. ``ends`` may be such a function that ends
    the episode. ``controllers`` and ``queues`` are classes that the scenario names, as for
    :func:`ackclock.run`.

    ``info`` has ``time_s``; after a reset ``draw`` (what was drawn), ``run_seed`` and ``flows``; with
    several learners ``decides``: whose action counts at the next step.

    An environment can be copied and pickled, with the point in the episode at which it stands
    (:meth:`snapshot`), if the functions and classes that it was given can.

    Raises ScenarioError if anything is wrong with the scenario, ValueError for the rest.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario,
        *,
        agent: Agents = "aurora",
        learners: Sequence[str] | None = None,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        randomise: Mapping[str, Distribution] | None = None,
        stop: Iterable[Stop] = (),
        max_steps: int | None = None,
        observe: Callable[[Features], npt.ArrayLike] | None = None,
        observation_space: gymnasium.spaces.Box | None = None,
        reward: Callable[[Features], float] | None = None,
        ends: Callable[[Features], bool] | None = None,
        controllers: Controllers = None,
        queues: Queues = None,
        render_mode: None = None,
    ) -> None:
        agents, learning = _agents(agent, learners)
        stop = list(stop)
        set = dict(set) if isinstance(set, Mapping) else list(set or ())
        self._made = {
            "agent": agent, "learners": learners, "set": set, "randomise": randomise, "stop": stop,
            "max_steps": max_steps, "observe": observe, "observation_space": observation_space, "reward": reward,
            "ends": ends, "controllers": controllers, "queues": queues,
        }  # fmt: skip
        self._scenario = scenario
        self._by_flow = isinstance(agent, Mapping)
        self.agent = agents if self._by_flow else agents[""]
        watch = observe is not None or reward is not None or ends is not None
        told = settings(agents, watch, randomise, stop, max_steps)
        self._core = _core(scenario, learning, set, told, 1, 1, "disabled", False, controllers, queues)
        self._names = [*_NAMES, *self._core.network]
        self._learners, width, numbers = self._core.shape
        if observe is not None and observation_space is None:
            raise ValueError("observe: a function needs `observation_space`, a Box for one learner")
        self._several = self._learners > 1
        of_rows = [agents[flow.rsplit(".", 1)[0]] if self._by_flow else agents[""] for flow in self.flows]
        spaces = [(observation_space or seen, done) for seen, done in map(_spaces, of_rows)]
        self.observation_space, self.action_space = (self._space(found) for found in zip(*spaces, strict=True))
        self.render_mode = render_mode
        self._observe, self._reward, self._ends = observe, reward, ends
        self._began = False
        self._actions = _view(self._core, "actions", np.float32, (self._learners, numbers))
        self._observations = _view(self._core, "observations", np.float32, (self._learners, width))
        self._rewards = _view(self._core, "rewards", np.float64, (self._learners,))
        self._decides = _view(self._core, "decides", np.bool_, (self._learners,))
        self._present = _view(self._core, "present", np.bool_, (self._learners,))
        self._times = _view(self._core, "times", np.float64, (self._learners,))

    def _space(self, of_rows: Sequence[gymnasium.spaces.Box]) -> gymnasium.Space[Any]:
        if self._by_flow:
            return gymnasium.spaces.Dict(dict(zip(self.flows, of_rows, strict=True)))
        return batch_space(of_rows[0], self._learners) if self._several else of_rows[0]

    @property
    def flows(self) -> list[str]:
        """The flows that learn, in the order of rows."""
        return self._core.flows

    def features(self, learner: int = 0) -> dict[str, float]:
        """All features of a learner's last interval, and what the network showed of it if anything asks for that.

        Raises IndexError without such a learner.
        """
        return dict(zip(self._names, self._core.measures(0, learner), strict=True))

    def snapshot(self) -> Snapshot:
        """Where it stands: :meth:`restore` brings an environment that is made alike there, to the byte.

        It has the actions of the episode so far, four bytes each.
        """
        random = None if self._np_random is None else self._np_random.bit_generator.state
        return Snapshot(self._core.snapshot(0), random)

    def restore(self, snapshot: Snapshot) -> tuple[Any, dict[str, Any]]:
        """Goes where an environment that is made alike stood, and gives what was seen there.

        The episode is run again with its actions, which takes as long as it did without a policy.

        Raises ValueError if the snapshot is of another environment.
        """
        if snapshot.random is not None:
            self.np_random.bit_generator.state = snapshot.random
        self._core.restore(0, snapshot.at)
        self._began = snapshot.at[2]
        return self._seen(), self._info() | self._drawn()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self._scenario, self._made, self.snapshot())

    def result(self) -> Result:
        """The results of the run, as :func:`ackclock.run` gives them; ends an episode that goes on.

        What the scenario records is of a second run of the episode with the same actions.

        Raises ValueError before the first reset.
        """
        return Result(self._core.result(0))

    def _seen(self) -> Any:
        rows: list[Floats]
        if self._observe is None:
            widths = self._core.widths
            rows = [row[:width].copy() for row, (width, _) in zip(self._observations, widths, strict=True)]
        else:
            rows = [np.asarray(self._observe(self.features(row)), dtype=np.float32) for row in range(self._learners)]
        if self._by_flow:
            return dict(zip(self.flows, rows, strict=True))
        return np.stack(rows) if self._several else rows[0]

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"time_s": float(self._times[0])}
        if self._several:
            info |= {"decides": self._decides.copy(), "present": self._present.copy()}
        return info

    def _drawn(self) -> dict[str, Any]:
        drawn, run_seed = self._core.drawn(0)
        return {"draw": dict(zip(self._core.paths, drawn)), "run_seed": run_seed, "flows": self.flows}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; with a ``seed`` it and those after it repeat exactly."""
        super().reset(seed=seed)
        if seed is None and not self._began:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._began = True
        self._core.reset([seed], [True])
        return self._seen(), self._info() | self._drawn()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes an action, and goes to the next decision. Raises ValueError if the episode is over."""
        if self._by_flow:
            for row, (flow, (_, numbers)) in enumerate(zip(self.flows, self._core.widths, strict=True)):
                self._actions[row, :numbers] = np.asarray(action[flow], dtype=np.float32).reshape(numbers)
        else:
            self._actions[...] = np.asarray(action, dtype=np.float32).reshape(self._actions.shape)
        reward, terminated, truncated = self._core.step()
        info = self._info()
        if self._reward is not None or self._ends is not None:
            features = {row: self.features(row) for row in range(self._learners) if self._present[row]}
            if self._reward is not None:
                for row, found in features.items():
                    self._rewards[row] = finite(self._reward(found))
                reward = float(self._rewards.sum()) / max(len(features), 1)
            if self._ends is not None and not terminated and any(map(self._ends, features.values())):
                terminated, truncated = True, False
        if self._several:
            info["rewards"] = self._rewards.copy()
        return self._seen(), reward, terminated, truncated, info


def _again(kind: type[Env], scenario: Scenario, made: dict[str, Any], snapshot: Snapshot) -> Env:
    env = kind(scenario, **made)
    if snapshot.at[2]:
        env.restore(snapshot)
    return env


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many environments in one call, on one or several threads, with rows in NumPy's memory.

    The arguments are those of :class:`Env`, but for functions and agents by flows. Each learner of each of the
    ``worlds`` is an environment of its own: ``num_envs`` is ``worlds`` times the learners, those of a
    world in a row. With ``results`` the summary of each episode that is over is kept
    (:meth:`result`). ``autoreset_mode`` is Gymnasium's.

    ``info`` has ``time_s``, ``decides`` and ``present`` for each row, and with ``AutoresetMode.SAME_STEP``
    ``final_obs`` where an episode has ended.
    """

    metadata: dict[str, Any]

    def __init__(
        self,
        scenario: Scenario,
        worlds: int = 1,
        *,
        agent: str | Agent = "aurora",
        learners: Sequence[str] | None = None,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        randomise: Mapping[str, Distribution] | None = None,
        stop: Iterable[Stop] = (),
        max_steps: int | None = None,
        threads: int = 1,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        results: bool = False,
        controllers: Controllers = None,
        queues: Queues = None,
    ) -> None:
        agents, learning = _agents(agent, learners)
        self.agent = agents[""]
        told = settings(agents, False, randomise, stop, max_steps)
        modes = {AutoresetMode.NEXT_STEP: "next_step", AutoresetMode.SAME_STEP: "same_step"}
        mode = modes.get(AutoresetMode(autoreset_mode), "disabled")
        self._core = _core(scenario, learning, set, told, worlds, threads, mode, results, controllers, queues)
        if self._core.loses_records:
            warnings.warn("worlds of a VectorEnv record nothing: `record` has no effect", stacklevel=2)
        self._names = [*_NAMES, *self._core.network]
        self._learners, width, numbers = self._core.shape
        self.worlds = worlds
        self.num_envs = worlds * self._learners
        self.single_observation_space, self.single_action_space = _spaces(self.agent)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode(autoreset_mode), "render_modes": []}
        self.render_mode = None
        self.spec = None
        rows = self.num_envs
        self._actions = _view(self._core, "actions", np.float32, (rows, numbers))
        self._observations = _view(self._core, "observations", np.float32, (rows, width))
        self._last = _view(self._core, "last", np.float32, (rows, width))
        self._rewards = _view(self._core, "rewards", np.float64, (rows,))
        self._terminated = _view(self._core, "terminated", np.bool_, (rows,))
        self._truncated = _view(self._core, "truncated", np.bool_, (rows,))
        self._decides = _view(self._core, "decides", np.bool_, (rows,))
        self._present = _view(self._core, "present", np.bool_, (rows,))
        self._times = _view(self._core, "times", np.float64, (rows,))
        self._began = False

    @property
    def flows(self) -> list[str]:
        """The flows of a world that learn, in the order of its rows."""
        return self._core.flows

    def drawn(self, world: int) -> dict[str, str]:
        """What was drawn for the episode of a world. Raises IndexError without such a world."""
        return dict(zip(self._core.paths, self._core.drawn(world)[0], strict=True))

    def features(self, row: int) -> dict[str, float]:
        """All features of the last interval of a row. Raises IndexError without such a row."""
        return dict(zip(self._names, self._core.measures(row // self._learners, row % self._learners), strict=True))

    def result(self, world: int) -> Result:
        """The results of the last episode of a world that is over, if they are kept; otherwise of the
        one that goes on, which ends."""
        return Result(self._core.result(world))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins episodes: world ``n`` has the seed ``seed + n``, or that of a list.

        ``options={"reset_mask": mask}`` resets those rows alone, whole worlds.
        """
        if seed is None and not self._began:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._began = True
        if seed is None:
            seeds: list[int | None] = [None] * self.worlds
        elif isinstance(seed, (int, np.integer)):
            seeds = [int(seed) + number for number in range(self.worlds)]
        else:
            seeds = list(seed)[:: self._learners] if len(list(seed)) == self.num_envs else list(seed)
        mask = (options or {}).get("reset_mask")
        chosen = [True] * self.worlds
        if mask is not None:
            rows = np.asarray(mask, dtype=bool).reshape(self.worlds, self._learners)
            if (rows.any(axis=1) != rows.all(axis=1)).any():
                raise ValueError("reset_mask: the learners of a world are reset together")
            chosen = rows[:, 0].tolist()
        self._core.reset(seeds, chosen)
        return self._observations.copy(), self._info()

    def _info(self) -> dict[str, Any]:
        return {"time_s": self._times.copy(), "decides": self._decides.copy(), "present": self._present.copy()}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes an action for each row, and goes to the next decision in each world."""
        self._actions[...] = np.asarray(actions, dtype=np.float32).reshape(self._actions.shape)
        self._core.step()
        info = self._info()
        terminated, truncated = self._terminated.copy(), self._truncated.copy()
        if self.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP:
            over = terminated | truncated
            if over.any():
                info["final_obs"] = self._last.copy()
                info["_final_obs"] = over
        return self._observations.copy(), self._rewards.copy(), terminated, truncated, info
