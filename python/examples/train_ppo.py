"""A congestion controller that PPO learns on a processor, and how it does beside CUBIC and BBR.

    pip install './python[gym,plot]' stable-baselines3
    python python/examples/train_ppo.py train --seeds 1 2 3 --steps 300000 --out learned
    python python/examples/train_ppo.py curve learned --figure curve.png
    python python/examples/train_ppo.py table learned/policy-1.json

``train`` takes a few minutes for each seed, and writes a learning curve and a policy for each. ``table``
evaluates a policy on paths that it has not seen, inside the range of the training and outside of it.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ackclock
from ackclock import gym

AGENT = gym.Agent(
    decide="20ms",
    action=gym.Action.factor("window", base=1.2, limit=1.0, least=2, most=5000),
    features=(
        gym.Feature("throughput_ratio", limits=(0, 1)),
        gym.Feature("rtt_ratio", limits=(0, 1)),
        gym.Feature("latency_inflation", limits=(-2, 2)),
        gym.Feature("send_ratio", scale=0.5, limits=(0, 2)),
        gym.Feature("loss_rate", scale=5, limits=(0, 2)),
        gym.Feature("bdp_ratio", limits=(0, 4)),
        gym.Feature("window_use", limits=(0, 2)),
    ),
    # As Orca's: what of the highest throughput arrives, less what is lost, where the queue is short.
    reward=((gym.Feature("orca_reward", limits=(-2, 1)), 1.0),),
    history=4,
)

PATH: dict[str, Any] = {
    "schema": 1,
    "title": "One learner on a path that is drawn",
    "run": {"duration": "10s", "seed": 1},
    "links": {"wire": {"rate": "20mbit", "delay": "20ms", "queue": {"kind": "pfifo", "limit": "100p"}}},
    "flows": [{"id": "learner", "path": ["wire"], "host": "linux-6.1", "cc": "external"}],
}

TRAINING = {
    "links.wire.rate": gym.log_uniform("5mbit", "50mbit"),
    "links.wire.delay": gym.log_uniform("5ms", "40ms"),
    "links.wire.queue.limit": gym.log_uniform("30p", "400p"),
}

HELD_OUT = {
    # Inside of what was trained on, with values that no draw hits; then outside.
    "inside: 12 Mbit/s, 30 ms, 60 packets": ("12mbit", "15ms", "60p", 0.0),
    "inside: 40 Mbit/s, 60 ms, 300 packets": ("40mbit", "30ms", "300p", 0.0),
    "slower: 2 Mbit/s, 40 ms, 50 packets": ("2mbit", "20ms", "50p", 0.0),
    "faster: 100 Mbit/s, 20 ms, 200 packets": ("100mbit", "10ms", "200p", 0.0),
    "farther: 20 Mbit/s, 160 ms, 400 packets": ("20mbit", "80ms", "400p", 0.0),
    "deep buffer: 10 Mbit/s, 40 ms, 1000 packets": ("10mbit", "20ms", "1000p", 0.0),
    "random loss of 1 %: 20 Mbit/s, 40 ms, 100 packets": ("20mbit", "20ms", "100p", 0.01),
}


class SameStep:
    """Vector environments as stable-baselines3 has them, without a loop in Python."""

    def __new__(cls, envs: gym.VectorEnv) -> Any:
        from stable_baselines3.common.vec_env import VecEnv

        class Adapter(VecEnv):
            def __init__(self) -> None:
                super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
                self._seed: int | None = None
                self._sums = np.zeros(self.num_envs)
                self._steps = np.zeros(self.num_envs)

            def seed(self, seed: int | None = None) -> Sequence[None | int]:
                self._seed = seed
                return [seed] * self.num_envs

            def reset(self) -> Any:
                observations, _ = envs.reset(seed=self._seed)
                self._seed = None
                return observations

            def step_async(self, actions: Any) -> None:
                self._actions = actions

            def step_wait(self) -> Any:
                observations, rewards, terminated, truncated, info = envs.step(self._actions)
                self._sums += rewards
                self._steps += 1
                infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
                dones = terminated | truncated
                for row in np.flatnonzero(dones):
                    infos[row] = {
                        "terminal_observation": info["final_obs"][row],
                        "TimeLimit.truncated": bool(truncated[row]),
                        "episode": {"r": float(self._sums[row]), "l": int(self._steps[row]), "t": 0.0},
                    }
                    self._sums[row] = self._steps[row] = 0
                return observations, rewards.astype(np.float32), dones, infos

            def close(self) -> None:
                envs.close()

            def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
                return [getattr(envs, attr_name, None)] * self.num_envs

            def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
                raise AttributeError(attr_name)

            def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
                raise AttributeError(method_name)

            def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
                return [False] * self.num_envs

        return Adapter()


def train(seeds: Iterable[int], steps: int, out: Path) -> None:
    """Trains a policy with each seed; writes policies and the mean reward of a step over time."""
    import torch
    from gymnasium.vector import AutoresetMode
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        envs = gym.VectorEnv(
            PATH, 16, agent=AGENT, randomise=TRAINING, autoreset_mode=AutoresetMode.SAME_STEP
        )
        model = PPO(
            "MlpPolicy",
            SameStep(envs),
            seed=seed,
            n_steps=256,
            batch_size=1024,
            n_epochs=6,
            gamma=0.98,
            gae_lambda=0.95,
            learning_rate=1e-3,
            ent_coef=0.0,
            policy_kwargs={"net_arch": [32, 32], "log_std_init": -0.5},
            device="cpu",
        )
        points: list[tuple[int, float]] = []

        class Curve(BaseCallback):
            def _on_step(self) -> bool:
                return True

            def _on_rollout_end(self) -> None:
                rewards = self.locals["rollout_buffer"].rewards
                points.append((self.num_timesteps, float(rewards.mean())))

        begun = time.monotonic()
        start = out / f"start-{seed}.json"
        gym.export(model, start, AGENT, about="before training")
        model.learn(steps, callback=Curve())
        took = time.monotonic() - begun
        about = f"PPO of stable-baselines3, {steps} steps, seed {seed}: python/examples/train_ppo.py"
        gym.export(model, out / f"policy-{seed}.json", AGENT, about=about)
        with open(out / f"curve-{seed}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("steps", "reward"), *points])
        before, after = judged(start), judged(out / f"policy-{seed}.json")
        print(f"seed {seed}: {took:.0f} s, reward of a step {before:.3f} before, {after:.3f} after", flush=True)


def judged(file: Path) -> float:
    """The mean reward of a step with a policy as the simulator runs it, over the same 32 drawn paths each time."""
    policy = gym.Policy(file)
    envs = gym.VectorEnv(PATH, 32, agent=AGENT, randomise=TRAINING)
    observations, _ = envs.reset(seed=1_000_000)
    rewards = []
    for _ in range(490):
        observations, found, *_ = envs.step(policy.act(observations))
        rewards.append(found.mean())
    return float(np.mean(rewards))


def curve(folder: Path, figure: Path) -> None:
    """Draws the learning curves, and their median."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = {file.stem: np.loadtxt(file, delimiter=",", skiprows=1) for file in sorted(folder.glob("curve-*.csv"))}
    fig, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for number, found in enumerate(rows.values()):
        axes.plot(found[:, 0], found[:, 1], color="0.7", linewidth=1, label="each seed" if number == 0 else None)
    shortest = min(len(found) for found in rows.values())
    median = np.median([found[:shortest, 1] for found in rows.values()], axis=0)
    steps = next(iter(rows.values()))[:shortest, 0]
    axes.plot(steps, median, color="#1f5fa8", linewidth=2, label="median")
    axes.set_xlabel("steps")
    axes.set_ylabel("mean reward of a step")
    axes.set_title("PPO on paths that are drawn anew for each episode")
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    fig.savefig(figure, dpi=120)
    for label, at in (("first", 0), ("last", -1)):
        print(f"median reward of a step, {label} rollout: {median[at]:.3f}")


def measure(cc: Any, path: tuple[str, str, str, float], seed: int) -> tuple[float, ...]:
    """Utilisation in %, 95th percentile of the queueing delay in ms, retransmissions in %; beside CUBIC: share in %, Jain's index."""
    rate, delay, limit, loss = path
    overrides = {
        "run.duration": "30s",
        "links.wire.rate": rate,
        "links.wire.delay": delay,
        "links.wire.queue.limit": limit,
        "links.wire.loss": {"kind": "iid", "probability": loss},
        "flows.learner.cc": cc,
    }
    alone = ackclock.run(PATH, set=overrides, seed=seed).summary
    link, flow = alone["links"][0], alone["flows"][0]
    rival = {"id": "rival", "path": ["wire"], "host": "linux-6.1", "cc": "cubic"}
    shared = ackclock.run(PATH | {"flows": [*PATH["flows"], rival]}, set=overrides | {"run.duration": "60s"}, seed=seed)
    goodputs = [flow["goodput_bps"] for flow in shared.summary["flows"]]
    return (
        100 * link["utilization"],
        link["sojourn_ms"]["p95"],
        100 * flow["retransmitted_packets"] / max(flow["sent_packets"], 1),
        100 * goodputs[0] / sum(goodputs),
        shared.summary["fairness_jain"],
    )


def table(policy: Path) -> None:
    """Prints a table of the policy beside CUBIC and BBR over the held-out paths, medians of 3 seeds."""
    learned = {"kind": "policy", "file": str(policy.resolve())}
    print("| path | controller | utilization, % | p95 queueing delay, ms | retransmitted, % | share beside CUBIC, % | Jain |")
    print("|---|---|---|---|---|---|---|")
    for name, path in HELD_OUT.items():
        for cc in (learned, "cubic", "bbr"):
            runs = [measure(cc, path, seed) for seed in (101, 102, 103)]
            use, delay, loss, share, jain = (statistics.median(column) for column in zip(*runs, strict=True))
            called = cc if isinstance(cc, str) else "learned"
            print(f"| {name} | {called} | {use:.1f} | {delay:.1f} | {loss:.2f} | {share:.0f} | {jain:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    training.add_argument("--steps", type=int, default=300_000)
    training.add_argument("--out", type=Path, default=Path("learned"))
    drawing = commands.add_parser("curve")
    drawing.add_argument("folder", type=Path)
    drawing.add_argument("--figure", type=Path, default=Path("curve.png"))
    evaluating = commands.add_parser("table")
    evaluating.add_argument("policy", type=Path)
    given = parser.parse_args()
    if given.command == "train":
        train(given.seeds, given.steps, given.out)
    elif given.command == "curve":
        curve(given.folder, given.figure)
    else:
        table(given.policy)


if __name__ == "__main__":
    main()
