"""Congestion controllers that learn: environments of Gymnasium over the simulator.

>>> from ackclock import gym
>>> env = gym.Env("scenarios/smoke/two-flows-pie.toml", learners=["reno"], agent="aurora")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

Requires gymnasium and numpy: ``pip install gymnasium numpy``.
"""

from __future__ import annotations

try:
    import gymnasium
except ImportError as error:  # pragma: no cover
    raise ImportError("environments need gymnasium and numpy: pip install gymnasium numpy") from error

from ackclock.gym._agent import (
    FEATURES,
    PRESETS,
    Action,
    Agent,
    Distribution,
    Feature,
    RoundTrips,
    Stop,
    aurora,
    choice,
    integer,
    log_uniform,
    normal,
    orca,
    sage,
    uniform,
)
from ackclock.gym._env import Env, Snapshot, VectorEnv
from ackclock.gym._policy import Policy, export, save

__all__ = [
    "FEATURES",
    "PRESETS",
    "Action",
    "Agent",
    "Distribution",
    "Env",
    "Feature",
    "Policy",
    "RoundTrips",
    "Snapshot",
    "Stop",
    "VectorEnv",
    "aurora",
    "choice",
    "export",
    "integer",
    "log_uniform",
    "normal",
    "orca",
    "sage",
    "save",
    "uniform",
]

ID = "ackclock/Scenario-v0"
"""What :func:`gymnasium.make` and :func:`gymnasium.make_vec` know the environments by."""

if ID not in gymnasium.registry:
    gymnasium.register(
        ID,
        entry_point="ackclock.gym:Env",
        vector_entry_point="ackclock.gym._make:vector",
        disable_env_checker=True,
        order_enforce=False,
    )
