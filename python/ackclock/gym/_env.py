"""Environments of Gymnasium over the simulator."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ackclock import _toml
from ackclock._core import Environments
from ackclock._results import Result
from ackclock.gym._agent import FEATURES, Agent, Distribution, Stop, agent_of, finite, settings

Floats = npt.NDArray[np.float32]
Features = Mapping[str, float]
Scenario = str | os.PathLike[str] | Mapping[str, Any]

_NAMES = list(FEATURES)


def _core(
    scenario: Scenario,
    learners: Sequence[str] | None,
    overrides: Mapping[str, Any] | Iterable[str] | None,
    told: str,
    count: int,
    threads: int,
    autoreset: str,
    results: bool,
) -> Environments:
    pairs = _toml.overrides(overrides)
    pairs += [("learners", f'flows.{flow}.cc="external"') for flow in learners or ()]
    if isinstance(scenario, Mapping):
        name, text, folder = "<dict>", _toml.document(scenario), ""
    else:
        path = Path(scenario)
        name, text, folder = str(path), path.read_text(encoding="utf-8"), str(path.parent)
    return Environments(name, text, folder, pairs, told, count, threads, autoreset, results)


def _view(core: Environments, name: str, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    return np.frombuffer(core.buffer(name), dtype=dtype).reshape(shape)


def _spaces(agent: Agent) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Of one learner."""
    low, high = (np.asarray(bounds, dtype=np.float32) for bounds in agent._limits())
    limit = np.float32(agent.action.limit)
    return (
        gymnasium.spaces.Box(low, high, dtype=np.float32),
        gymnasium.spaces.Box(-limit, limit, (1,), dtype=np.float32),
    )


class Env(gymnasium.Env[Any, Any]):
    """A run of a scenario in which flows learn.

    ``scenario`` is a file or a dict, as for :func:`ackclock.run`; flows with ``cc = "external"``
    learn, and those that ``learners`` names. ``agent`` is an :class:`~ackclock.gym.Agent`, or the
    name of a preset. ``randomise`` has a distribution for each path whose value is drawn anew for
    each episode, ``stop`` the conditions that end one early. With several learners, observations
    have the shape ``(learners, n)``, actions ``(learners, 1)``, and the reward is the mean of
    theirs; ``info["rewards"]`` has each.

    ``observe`` and ``reward`` may be functions of the features of the last interval, by their names
    (:data:`~ackclock.gym.FEATURES`), in place of those of the agent; ``observe`` needs
    ``observation_space`` for one learner. ``ends`` may be such a function that ends the episode.

    ``info`` has ``time_s``; after a reset ``draw`` (what was drawn), ``run_seed`` and ``flows``; with
    several learners ``decides``: whose action counts at the next step.

    Raises ScenarioError if anything is wrong with the scenario, ValueError for the rest.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario,
        *,
        agent: str | Agent = "aurora",
        learners: Sequence[str] | None = None,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        randomise: Mapping[str, Distribution] | None = None,
        stop: Iterable[Stop] = (),
        max_steps: int | None = None,
        observe: Callable[[Features], npt.ArrayLike] | None = None,
        observation_space: gymnasium.spaces.Box | None = None,
        reward: Callable[[Features], float] | None = None,
        ends: Callable[[Features], bool] | None = None,
        render_mode: None = None,
    ) -> None:
        self.agent = agent_of(agent)
        told = settings(self.agent, randomise, stop, max_steps)
        self._core = _core(scenario, learners, set, told, 1, 1, "disabled", False)
        self._learners, width = self._core.shape
        observation, action = _spaces(self.agent)
        if observe is not None:
            if observation_space is None:
                raise ValueError("observe: a function needs `observation_space`, a Box for one learner")
            observation = observation_space
        self._several = self._learners > 1
        self.observation_space = batch_space(observation, self._learners) if self._several else observation
        self.action_space = batch_space(action, self._learners) if self._several else action
        self.render_mode = render_mode
        self._observe, self._reward, self._ends = observe, reward, ends
        self._began = False
        self._actions = _view(self._core, "actions", np.float32, (self._learners,))
        shape = (self._learners, width) if self._several else (width,)
        self._observations = _view(self._core, "observations", np.float32, shape)
        self._rewards = _view(self._core, "rewards", np.float64, (self._learners,))
        self._decides = _view(self._core, "decides", np.bool_, (self._learners,))
        self._times = _view(self._core, "times", np.float64, (self._learners,))

    @property
    def flows(self) -> list[str]:
        """The flows that learn, in the order of rows."""
        return self._core.flows

    def features(self, learner: int = 0) -> dict[str, float]:
        """All features of a learner's last interval. Raises IndexError without such a learner."""
        return dict(zip(_NAMES, self._core.measures(0, learner), strict=True))

    def result(self) -> Result:
        """The results of the run, as :func:`ackclock.run` gives them; ends an episode that goes on.

        What the scenario records is of a second run of the episode with the same actions.

        Raises ValueError before the first reset.
        """
        return Result(self._core.result(0))

    def _seen(self) -> Floats:
        if self._observe is None:
            seen: Floats = self._observations.copy()
            return seen
        rows = [np.asarray(self._observe(self.features(row)), dtype=np.float32) for row in range(self._learners)]
        return np.stack(rows) if self._several else rows[0]

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"time_s": float(self._times[0])}
        if self._several:
            info["decides"] = self._decides.copy()
        return info

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; with a ``seed`` it and those after it repeat exactly."""
        super().reset(seed=seed)
        if seed is None and not self._began:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._began = True
        self._core.reset([seed], [True])
        drawn, run_seed = self._core.drawn(0)
        info = self._info()
        info |= {"draw": dict(zip(self._core.paths, drawn, strict=True)), "run_seed": run_seed, "flows": self.flows}
        return self._seen(), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes an action, and goes to the next decision. Raises ValueError if the episode is over."""
        self._actions[...] = np.asarray(action, dtype=np.float32).reshape(self._actions.shape)
        reward, terminated, truncated = self._core.step()
        info = self._info()
        if self._reward is not None or self._ends is not None:
            features = [self.features(row) for row in range(self._learners)]
            if self._reward is not None:
                rewards = np.array([finite(self._reward(row)) for row in features])
                self._rewards[...] = rewards
                reward = float(rewards.mean())
            if self._ends is not None and not terminated and any(self._ends(row) for row in features):
                terminated, truncated = True, False
        if self._several:
            info["rewards"] = self._rewards.copy()
        return self._seen(), reward, terminated, truncated, info


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many environments in one call, on one or several threads, with rows in NumPy's memory.

    The arguments are those of :class:`Env`, but for functions. Each learner of each of the
    ``worlds`` is an environment of its own: ``num_envs`` is ``worlds`` times the learners, those of a
    world in a row. With ``results`` the summary of each episode that is over is kept
    (:meth:`result`). ``autoreset_mode`` is Gymnasium's.

    ``info`` has ``time_s`` and ``decides`` for each row, and with ``AutoresetMode.SAME_STEP``
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
    ) -> None:
        self.agent = agent_of(agent)
        told = settings(self.agent, randomise, stop, max_steps)
        modes = {AutoresetMode.NEXT_STEP: "next_step", AutoresetMode.SAME_STEP: "same_step"}
        mode = modes.get(AutoresetMode(autoreset_mode), "disabled")
        self._core = _core(scenario, learners, set, told, worlds, threads, mode, results)
        if self._core.loses_records:
            warnings.warn("worlds of a VectorEnv record nothing: `record` has no effect", stacklevel=2)
        self._learners, width = self._core.shape
        self.worlds = worlds
        self.num_envs = worlds * self._learners
        self.single_observation_space, self.single_action_space = _spaces(self.agent)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode(autoreset_mode), "render_modes": []}
        self.render_mode = None
        self.spec = None
        rows = self.num_envs
        self._actions = _view(self._core, "actions", np.float32, (rows,))
        self._observations = _view(self._core, "observations", np.float32, (rows, width))
        self._last = _view(self._core, "last", np.float32, (rows, width))
        self._rewards = _view(self._core, "rewards", np.float64, (rows,))
        self._terminated = _view(self._core, "terminated", np.bool_, (rows,))
        self._truncated = _view(self._core, "truncated", np.bool_, (rows,))
        self._decides = _view(self._core, "decides", np.bool_, (rows,))
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
        return dict(zip(_NAMES, self._core.measures(row // self._learners, row % self._learners), strict=True))

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
        return self._observations.copy(), {"time_s": self._times.copy(), "decides": self._decides.copy()}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes an action for each row, and goes to the next decision in each world."""
        self._actions[...] = np.asarray(actions, dtype=np.float32).reshape(self._actions.shape)
        self._core.step()
        info: dict[str, Any] = {"time_s": self._times.copy(), "decides": self._decides.copy()}
        terminated, truncated = self._terminated.copy(), self._truncated.copy()
        if self.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP:
            over = terminated | truncated
            if over.any():
                info["final_obs"] = self._last.copy()
                info["_final_obs"] = over
        return self._observations.copy(), self._rewards.copy(), terminated, truncated, info
