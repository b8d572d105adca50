"""Steps per second of environments, beside the bare simulator: python python/benches/gym.py

One flow at 10 Mbit/s, 20 ms of round-trip time, a buffer of 100 packets. The bare simulator runs the same
scenario with a policy of one weight in place of the environment, so that it carries the same packets.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ackclock
from ackclock import gym


def scenario(cc: Any, seconds: int) -> dict[str, Any]:
    return {
        "schema": 1,
        "run": {"duration": f"{seconds}s", "seed": 1},
        "links": {"wire": {"rate": "10mbit", "delay": "10ms", "queue": {"kind": "pfifo", "limit": "100p"}}},
        "flows": [{"id": "f", "path": ["wire"], "host": "linux-6.1", "cc": cc}],
    }


def agent(decide: str) -> gym.Agent:
    return gym.Agent(decide=decide, action=gym.Action.window(2, 60), history=10)


def rate(work: Callable[[], int]) -> float:
    """The best of three."""
    best = 0.0
    for _ in range(3):
        begun = time.perf_counter()
        done = work()
        best = max(best, done / (time.perf_counter() - begun))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=200, help="simulated time of an episode")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    for decide in ("10ms", "ack"):
        told = agent(decide)
        env = gym.Env(scenario("external", given.seconds), agent=told)
        action = np.array([0.2], dtype=np.float32)

        def one(env: gym.Env = env) -> int:
            env.reset(seed=1)
            steps, over = 0, False
            while not over:
                _, _, terminated, truncated, _ = env.step(action)
                over, steps = terminated or truncated, steps + 1
            return steps

        print(f"{decide}: Env, one: {rate(one):,.0f} steps/s", flush=True)
        for worlds in (1, 64):
            envs = gym.VectorEnv(scenario("external", given.seconds), worlds, agent=told, threads=given.threads)
            actions = np.full((worlds, 1), 0.2, dtype=np.float32)
            calls = 20_000 // worlds + 200

            def many(envs: gym.VectorEnv = envs, actions: Any = actions, calls: int = calls) -> int:
                envs.reset(seed=1)
                for _ in range(calls):
                    envs.step(actions)
                return calls * int(actions.shape[0])

            print(f"{decide}: VectorEnv, {worlds} worlds: {rate(many):,.0f} steps/s", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "policy.json"
            # The same window at each decision, whatever is seen.
            gym.save(file, told, [(np.zeros((1, 30)), [0.2], "identity")])
            cc = {"kind": "policy", "file": str(file)}
            steps = one()

            def bare() -> int:
                ackclock.run(scenario(cc, given.seconds))
                return steps

            print(f"{decide}: the simulator alone, with a policy: {rate(bare):,.0f} decisions/s", flush=True)

    def cubic() -> int:
        ackclock.run(scenario("cubic", given.seconds))
        return given.seconds * 100

    print(f"the simulator alone, CUBIC: {rate(cubic):,.0f} intervals of 10 ms/s")
    env = gym.Env(scenario("external", 10), agent=agent("10ms"))
    draws = {"links.wire.rate": gym.log_uniform("5mbit", "20mbit")}
    drawn = gym.Env(scenario("external", 10), agent=agent("10ms"), randomise=draws)

    def resets(env: gym.Env) -> int:
        for _ in range(300):
            env.reset()
        return 300

    print(f"resets: {rate(lambda: resets(env)):,.0f}/s, with a value drawn: {rate(lambda: resets(drawn)):,.0f}/s")


if __name__ == "__main__":
    main()
