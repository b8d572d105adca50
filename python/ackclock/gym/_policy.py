"""Policies as files: exported from a trainer, and run by the simulator."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ackclock._core import LearnedPolicy
from ackclock.gym._agent import Agent

_ACTIVATIONS = {"Tanh": "tanh", "ReLU": "relu", "Identity": "identity", "Softplus": "softplus", "Sigmoid": "sigmoid"}


class Policy:
    """A policy as the simulator runs it: ``cc = { kind = "policy", file = "..." }``.

    Raises OSError if the file cannot be read, ValueError if it is no policy.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._policy = LearnedPolicy(Path(path).read_text(encoding="utf-8"))

    def act(self, observations: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Actions for observations of shape ``(n,)`` or ``(rows, n)``, of shape ``(k,)`` or ``(rows, k)`` for actions of ``k`` numbers.

        Raises ValueError if they are of another width.
        """
        rows = np.ascontiguousarray(observations, dtype=np.float32)
        if rows.shape[-1:] != (self._policy.width,):
            raise ValueError(f"found observations of shape {rows.shape}, expected {self._policy.width} numbers each")
        actions = np.asarray(self._policy.act(rows.tobytes()), dtype=np.float32)
        return actions.reshape(*rows.shape[:-1], self._policy.outputs)


def save(
    path: str | os.PathLike[str],
    agent: Agent,
    layers: Sequence[tuple[npt.ArrayLike, npt.ArrayLike, str]],
    *,
    normalisation: tuple[npt.ArrayLike, npt.ArrayLike, float] | None = None,
    about: str = "",
) -> None:
    """Writes a policy: ``layers`` are weights (outputs by inputs), biases and an activation each.

    ``normalisation`` has the means, the standard deviations, and a limit: ``(x - mean) / deviation``.
    ``agent`` is what it was trained with.

    Raises ValueError if that is no policy: the message says which layer has which shape.
    """
    text: dict[str, Any] = {"schema": 1, "about": about} | agent._json()
    if normalisation is not None:
        mean, deviation, limit = normalisation
        text["normalisation"] = {
            "mean": np.asarray(mean, dtype=float).tolist(),
            "deviation": np.asarray(deviation, dtype=float).tolist(),
            "limit": float(limit),
        }
    text["layers"] = [
        {"weights": _numbers(weights), "bias": _numbers(bias), "activation": activation}
        for weights, bias, activation in layers
    ]
    written = json.dumps(text, allow_nan=False)
    LearnedPolicy(written)
    Path(path).write_text(written + "\n", encoding="utf-8")


def _numbers(values: npt.ArrayLike) -> Any:
    # Nine digits are those of a 32-bit float.
    found = np.asarray(values, dtype=np.float32)
    return json.loads(json.dumps(found.tolist()), parse_float=lambda text: float(f"{float(text):.9g}"))


def export(model: Any, path: str | os.PathLike[str], agent: Agent, *, normalise: Any = None, about: str = "") -> None:
    """Writes the policy of a model of stable-baselines3: PPO or A2C with ``"MlpPolicy"``.

    What is written is its most likely action. ``normalise`` is the ``VecNormalize`` that it was
    trained with, if any.

    Raises TypeError for another kind of model, ValueError if it does not fit the agent.
    """
    policy = getattr(model, "policy", model)
    network: Any = getattr(policy, "mlp_extractor", None)
    last: Any = getattr(policy, "action_net", None)
    if network is None or not hasattr(network, "policy_net") or not hasattr(last, "weight"):
        raise TypeError(f"{type(model).__name__} has no multilayer perceptron that gives actions: expected PPO or A2C")
    layers: list[tuple[Any, Any, str]] = []
    for module in network.policy_net:
        kind = type(module).__name__
        if kind == "Linear":
            layers.append((_array(module.weight), _array(module.bias), "identity"))
        elif kind in _ACTIVATIONS and layers:
            layers[-1] = (*layers[-1][:2], _ACTIVATIONS[kind])
        else:
            raise TypeError(f"a layer of kind {kind}; expected Linear and one of {', '.join(_ACTIVATIONS)}")
    layers.append((_array(last.weight), _array(last.bias), "identity"))
    normalisation = None
    if normalise is not None:
        deviation = np.sqrt(normalise.obs_rms.var + normalise.epsilon)
        normalisation = (normalise.obs_rms.mean, deviation, float(normalise.clip_obs))
    save(path, agent, layers, normalisation=normalisation, about=about)


def _array(tensor: Any) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = tensor.detach().cpu().numpy()
    return found
