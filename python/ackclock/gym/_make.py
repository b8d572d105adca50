"""What gymnasium.make_vec calls."""

from __future__ import annotations

from typing import Any

from ackclock.gym._env import Scenario, VectorEnv


def vector(scenario: Scenario, num_envs: int = 1, **arguments: Any) -> VectorEnv:
    """So many worlds."""
    return VectorEnv(scenario, num_envs, **arguments)
