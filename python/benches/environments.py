"""Steps per second of environments, beside the bare simulator: python python/benches/environments.py

One flow at 10 Mbit/s, 20 ms of round-trip time, a buffer of 100 packets. The bare simulator runs the same
scenario with a policy of one weight in place of the environment, so that it carries the same packets. Times are
those of the processor (all threads of this process), so that what else runs on the machine matters less.
``--messages`` also measures what a step costs that goes to another process and back through ZeroMQ, as
ns3-gym's does, with nothing simulated: an upper bound for its rate.
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
    """In a second of the processor; the best of three."""
    best = 0.0
    for _ in range(3):
        begun = time.process_time()
        done = work()
        best = max(best, done / (time.process_time() - begun))
    return best


def echo(port: int) -> None:
    import zmq

    socket = zmq.Context().socket(zmq.REP)
    socket.bind(f"tcp://127.0.0.1:{port}")
    while (message := socket.recv()) != b"end":
        socket.send(message)
    socket.send(b"end")


def messages(port: int = 15_555) -> float:
    """Requests and answers of 200 bytes to another process, in a second of the processor of both."""
    import multiprocessing
    import resource

    import zmq

    other = multiprocessing.Process(target=echo, args=(port,))
    other.start()
    socket = zmq.Context().socket(zmq.REQ)
    socket.connect(f"tcp://127.0.0.1:{port}")
    socket.send(b"x" * 200)
    socket.recv()
    begun, wall = time.process_time(), time.perf_counter()
    for _ in range(20_000):
        socket.send(b"x" * 200)
        socket.recv()
    ours, wall = time.process_time() - begun, time.perf_counter() - wall
    socket.send(b"end")
    socket.recv()
    other.join()
    theirs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 20_000 / (ours + theirs.ru_utime + theirs.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=200, help="simulated time of an episode")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--messages", action="store_true", help="also measure ZeroMQ")
    given = parser.parse_args()
    if given.messages:
        print(f"messages through ZeroMQ, there and back: {messages():,.0f}/s", flush=True)
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
