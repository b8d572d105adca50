"""Environments: Gymnasium's own checks, resets that repeat, policies that are the same in use, and what is wrong."""

from __future__ import annotations

import copy
import pickle
import signal
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import ROOT
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import ackclock
from ackclock import gym

AGENT = gym.Agent(
    decide="20ms",
    action=gym.Action.factor("window", base=2.0, least=2, most=200),
    features=(
        gym.Feature("throughput_ratio", limits=(0, 1)),
        gym.Feature("rtt_ratio", limits=(0, 1), over=5, statistic="min"),
        gym.Feature("loss_rate", limits=(0, 1)),
    ),
    history=2,
)


def world(*ccs: str, duration: str = "2s", **more: Any) -> dict[str, Any]:
    """A bottleneck of 8 Mbit/s and flows of these controllers over it."""
    return {
        "schema": 1,
        "title": "learners",
        "run": {"duration": duration, "seed": 5},
        "links": {"wire": {"rate": "8mbit", "delay": "10ms", "queue": {"kind": "pfifo", "limit": "40p"}}},
        "flows": [
            {"id": f"f{number}", "path": ["wire"], "host": "linux-6.1", "cc": cc} | more
            for number, cc in enumerate(ccs)
        ],
    }


def saved(path: Path, agent: gym.Agent = AGENT) -> gym.Policy:
    """A policy with weights of no meaning."""
    random = np.random.default_rng(3)
    width = len(agent.features) * agent.history
    hidden = (random.normal(size=(8, width)), random.normal(size=8), "tanh")
    gym.save(path, agent, [hidden, (random.normal(size=(1, 8)), [0.1], "identity")])
    return gym.Policy(path)


def episode(env: gym.Env, policy: gym.Policy, seed: int | None) -> tuple[float, int]:
    observation, _ = env.reset(seed=seed)
    over, rewards, steps = False, 0.0, 0
    while not over:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        over, rewards, steps = terminated or truncated, rewards + reward, steps + 1
    return rewards, steps


@pytest.mark.parametrize("agent", ["aurora", "orca", "sage", AGENT])
@pytest.mark.parametrize("ccs", [["external"], ["external", "cubic", "external"]])
def test_gymnasium_finds_nothing(agent: str | gym.Agent, ccs: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # These bounds are what they are; the checker prefers others.
        warnings.filterwarnings("ignore", message=".*recommend.*")
        warnings.filterwarnings("ignore", message=".*[Nn]ot in action space.*|.*Box action space.*")
        check_env(gym.Env(world(*ccs), agent=agent), skip_render_check=True)


@pytest.mark.parametrize("agent,width", [("aurora", 30), ("orca", 7), ("sage", 69)])
def test_presets_have_their_widths(agent: str, width: int) -> None:
    env = gym.Env(world("external"), agent=agent)
    assert env.observation_space.shape == (width,)
    observation, _ = env.reset(seed=1)
    for _ in range(40):
        observation, reward, *_ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation), observation
        assert np.isfinite(reward)


def test_a_seed_repeats_everything() -> None:
    draws = {
        "links.wire.rate": gym.log_uniform("2mbit", "20mbit"),
        "links.wire.delay": gym.uniform("1ms", "40ms"),
        "links.wire.queue.limit": gym.choice(["20p", "100p"]),
        "flows.f1.cc": gym.choice(["cubic", "bbr"]),
        "flows.f1.start": gym.normal("200ms", "100ms", "0ms", "500ms"),
        "flows.f1.count": gym.integer(1, 3),
    }
    env = gym.Env(world("external", "cubic"), agent=AGENT, randomise=draws)

    def episodes(seed: int) -> list[Any]:
        found = []
        random = np.random.default_rng(1)
        for number in range(3):
            _, info = env.reset(seed=seed if number == 0 else None)
            over, rows = False, []
            while not over:
                observation, reward, terminated, truncated, _ = env.step(random.uniform(-1, 1, 1))
                over = terminated or truncated
                rows.append((observation.tolist(), reward))
            found.append((info["draw"], info["run_seed"], rows, env.result().json))
        return found

    once = episodes(7)
    assert once == episodes(7)
    assert once[0][0] != once[1][0] and once[0][1] != once[1][1]
    assert episodes(8)[0][0] != once[0][0]
    assert set(once[0][0]) == set(draws)


def test_what_an_episode_records_is_of_the_same_run() -> None:
    scenario = world("external", "cubic") | {"record": {"series": "100ms", "tcp": True}}
    draws = {"links.wire.rate": gym.uniform("4mbit", "8mbit")}
    lines: dict[str, list[str]] = {}
    for name, text in {"recorded": scenario, "plain": world("external", "cubic")}.items():
        env = gym.Env(text, agent=AGENT, randomise=draws)
        random = np.random.default_rng(5)
        env.reset(seed=4)
        # Once to its end, once broken off.
        for steps in (1000, 30):
            over = False
            while not over and steps:
                _, _, terminated, truncated, _ = env.step(random.uniform(-1, 1, 1))
                over, steps = terminated or truncated, steps - 1
            result = env.result()
            lines.setdefault(name, []).append(result.json)
            if name == "recorded":
                assert len(result.series) > 4
                assert len(result.records["tcp.csv"].splitlines()) > 100
            env.reset()
    assert lines["recorded"] == lines["plain"]
    with pytest.warns(UserWarning, match="record nothing"):
        gym.VectorEnv(scenario, 2, agent=AGENT)


@pytest.mark.parametrize("decide", ["20ms", gym.RoundTrips(0.5), "round", "ack"])
@pytest.mark.parametrize("beneath", [None, "cubic"])
def test_an_exported_policy_does_what_it_did(tmp_path: Path, decide: gym.Agent, beneath: str | None) -> None:
    agent = AGENT.with_(decide=decide, beneath=beneath)
    policy = saved(tmp_path / "policy.json", agent)
    scenario = world("external", "cubic")
    env = gym.Env(scenario, agent=agent)
    _, info = env.reset(seed=3)
    episode(env, policy, 3)
    here = env.result().json.replace('"external"', '"policy"')
    cc = {"kind": "policy", "file": str(tmp_path / "policy.json")}
    there = ackclock.run(scenario, set={"flows.f0.cc": cc}, seed=info["run_seed"]).json
    assert here == there


def test_numpy_computes_the_same_policy(tmp_path: Path) -> None:
    policy = saved(tmp_path / "policy.json")
    random = np.random.default_rng(3)
    w, b, v = random.normal(size=(8, 6)), random.normal(size=8), random.normal(size=(1, 8))
    observations = np.random.default_rng(4).normal(size=(50, 6)).astype(np.float32)
    expected = np.tanh(observations @ w.T + b) @ v.T + 0.1
    assert np.allclose(policy.act(observations), expected, atol=1e-5)
    assert policy.act(observations[0]).shape == (1,)
    with pytest.raises(ValueError, match="expected 6 numbers"):
        policy.act(np.zeros(5))


class _Tensor:
    """What PyTorch's tensors have."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values, dtype=np.float32)

    def detach(self) -> _Tensor:
        return self

    def cpu(self) -> _Tensor:
        return self

    def numpy(self) -> Any:
        return self.values


class Linear:
    def __init__(self, weight: Any, bias: Any) -> None:
        self.weight, self.bias = _Tensor(weight), _Tensor(bias)


class Tanh:
    pass


def test_a_model_of_stable_baselines3_is_exported(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    w, b, v = random.normal(size=(8, 6)), random.normal(size=8), random.normal(size=(1, 8))
    network = SimpleNamespace(policy_net=[Linear(w, b), Tanh()])
    model = SimpleNamespace(policy=SimpleNamespace(mlp_extractor=network, action_net=Linear(v, [0.1])))
    mean, var = random.normal(size=6), random.uniform(0.5, 2, size=6)
    normalise = SimpleNamespace(obs_rms=SimpleNamespace(mean=mean, var=var), epsilon=1e-8, clip_obs=1.5)
    gym.export(model, tmp_path / "policy.json", AGENT, normalise=normalise)
    observations = np.random.default_rng(4).normal(size=(50, 6)).astype(np.float32)
    seen = np.clip((observations - mean) / np.sqrt(var + 1e-8), -1.5, 1.5)
    expected = np.tanh(seen @ w.T + b) @ v.T + 0.1
    assert np.allclose(gym.Policy(tmp_path / "policy.json").act(observations), expected, atol=1e-5)
    network.policy_net.append(object())
    with pytest.raises(TypeError, match="a layer of kind object"):
        gym.export(model, tmp_path / "other.json", AGENT)


def test_the_policy_of_the_example_runs() -> None:
    path = ROOT / "scenarios" / "learned" / "policy.json"
    policy = gym.Policy(path)
    observation = np.zeros(policy._policy.width, dtype=np.float32)
    assert np.isfinite(policy.act(observation)).all()


def test_vectors_are_gymnasiums() -> None:
    envs = gym.VectorEnv(world("external", duration="300ms"), 4, agent=AGENT, threads=2)
    assert (envs.num_envs, envs.observation_space.shape) == (4, (4, 6))
    observations, info = envs.reset(seed=1)
    assert envs.observation_space.contains(observations)
    ended = 0
    for _ in range(60):
        observations, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
        assert observations.shape == (4, 6) and rewards.shape == (4,) and info["decides"].shape == (4,)
        ended += int(truncated.sum())
        # The step after the end is the reset.
        assert (rewards[info["time_s"] < 0.05] == 0).all()
    assert ended >= 12
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    wrapped.reset(seed=2)
    for _ in range(20):
        _, _, _, truncated, info = wrapped.step(wrapped.action_space.sample())
        if truncated.any():
            assert (info["episode"]["l"][truncated] > 5).all()


def test_a_vector_is_as_each_of_its_environments() -> None:
    draws = {"links.wire.rate": gym.uniform("2mbit", "10mbit")}
    scenario = world("external", "external", duration="500ms")
    envs = gym.VectorEnv(
        scenario, 3, agent=AGENT, randomise=draws, threads=3, autoreset_mode=AutoresetMode.SAME_STEP, results=True
    )
    each = [gym.Env(scenario, agent=AGENT, randomise=draws) for _ in range(3)]
    observations, _ = envs.reset(seed=11)
    singles = np.stack([env.reset(seed=11 + number)[0] for number, env in enumerate(each)])
    assert (observations.reshape(3, 2, 6) == singles).all()
    random = np.random.default_rng(0)
    over = 0
    for _ in range(60):
        actions = random.uniform(-1, 1, (6, 1)).astype(np.float32)
        observations, rewards, _, truncated, info = envs.step(actions)
        for number, env in enumerate(each):
            single, reward, _, ended, _ = env.step(actions[2 * number : 2 * number + 2])
            assert bool(truncated[2 * number]) == ended
            assert np.isclose(rewards[2 * number : 2 * number + 2].mean(), reward)
            if ended:
                over += 1
                assert (info["final_obs"][2 * number : 2 * number + 2] == single).all()
                assert envs.result(number).json == env.result().json
                single, _ = env.reset()
            assert (observations[2 * number : 2 * number + 2] == single).all()
    assert over >= 6


def test_worlds_of_a_vector_begin_again_alone() -> None:
    draws = {"links.wire.rate": gym.uniform("2mbit", "10mbit")}
    envs = gym.VectorEnv(world("external", "external"), 2, agent=AGENT, randomise=draws, threads=1)
    begun, _ = envs.reset(seed=[7, 9])
    drawn = [envs.drawn(number) for number in range(2)]
    assert list(drawn[0]) == list(draws) and drawn[0] != drawn[1]
    again, _ = envs.reset(seed=[7, 7, 9, 9])
    assert (begun == again).all() and [envs.drawn(number) for number in range(2)] == drawn
    for _ in range(3):
        *_, info = envs.step(np.ones((4, 1)))
    assert len(envs.flows) == 2 and envs.features(3)["throughput_ratio"] >= 0
    _, after = envs.reset(options={"reset_mask": [True, True, False, False]})
    assert (after["time_s"][:2] < info["time_s"][:2]).all() and (after["time_s"][2:] == info["time_s"][2:]).all()
    with pytest.raises(ValueError, match="the learners of a world are reset together"):
        envs.reset(options={"reset_mask": [True, False, False, False]})


def test_gymnasium_makes_them() -> None:
    env = gymnasium.make("ackclock/Scenario-v0", scenario=world("external"), agent="orca")
    assert env.reset(seed=1)[0].shape == (7,)
    envs = gymnasium.make_vec("ackclock/Scenario-v0", num_envs=3, scenario=world("external"), agent="orca")
    assert envs.reset(seed=1)[0].shape == (3, 7)


def test_functions_see_the_features() -> None:
    seen: list[float] = []

    def reward(features: gym._env.Features) -> float:
        seen.append(features["throughput_bps"])
        return features["throughput_bps"] / 8e6

    env = gym.Env(
        world("external", "cubic"),
        agent=AGENT,
        reward=reward,
        observe=lambda features: [features["srtt_s"], features["cwnd_packets"]],
        observation_space=gymnasium.spaces.Box(0, 1e6, (2,), np.float32),
        ends=lambda features: features["age_s"] > 1.0,
    )
    check_env(env, skip_render_check=True)
    env.reset(seed=1)
    over = False
    while not over:
        observation, found, terminated, truncated, info = env.step([0.1])
        over = terminated or truncated
        assert found == seen[-1] / 8e6 and observation[0] > 0.02
    assert terminated and 1.0 < info["time_s"] < 1.1
    network = set(env.features()) - set(gym.FEATURES)
    assert {"share", "links.wire.forward.sojourn_ms", "flows.f1.0.rtt_ms"} <= network
    # Who does not ask for it pays nothing for it.
    assert set(gym.Env(world("external"), agent=AGENT).features()) == set(gym.FEATURES)


def test_what_the_network_shows_can_be_observed_and_rewarded() -> None:
    agent = AGENT.with_(
        features=[gym.Feature("links.wire.sojourn_ms", limits=(0, 1000)), "rtt_ratio", gym.Feature("share")],
        reward=[("share", 1.0), ("links.wire.forward.utilization", 1.0)],
    )
    env = gym.Env(world("external", "cubic") | {"record": {"series": "20ms"}}, agent=agent)
    env.reset(seed=1)
    rows = []
    over = False
    while not over:
        observation, reward, terminated, truncated, info = env.step([0.2])
        over = terminated or truncated
        assert observation.shape == (6,)
        rows.append((info["time_s"], observation[3], observation[5], reward))
    series = env.result().series
    wire = series[series.id == "wire.forward"].set_index("to_s").to_dict("index")
    arrived = series[series.kind == "flow"].pivot(index="to_s", columns="id", values="throughput_bps")
    flows_at = arrived.fillna(0).to_dict("index")
    for time, sojourn, share, reward in rows:
        expected = wire[time]
        delay = expected["sojourn_ms"]
        assert sojourn == pytest.approx(0 if np.isnan(delay) else delay, abs=1e-5)
        flows = flows_at.get(time, {})
        total = sum(flows.values())
        assert share == pytest.approx(flows["f0.0"] / total if total else 0, abs=1e-5)
        assert reward == pytest.approx(share + expected["utilization"], abs=1e-5)
    with pytest.raises(ValueError, match="expected links.ID.COLUMN with ID one of wire.forward, wire.reverse"):
        gym.Env(world("external"), agent=AGENT.with_(reward=[("links.wier.utilization", 1.0)]))
    with pytest.raises(ValueError, match="unknown column `delay`"):
        gym.Env(world("external"), agent=AGENT.with_(features=["links.wire.delay"]))
    with pytest.raises(ValueError, match="nothing that a sender sees"):
        gym.save("/dev/null", agent, [(np.zeros((1, 6)), [0], "identity")])


def test_flows_may_have_agents_of_their_own() -> None:
    rate = AGENT.with_(action=[gym.Action.step("rate"), gym.Action.window(2, 100)], decide="50ms")
    env = gym.Env(world("cubic", "newreno", "bbr"), agent={"f0": AGENT, "f2": rate})
    assert env.flows == ["f0.0", "f2.0"]
    assert [space.shape for space in env.action_space.values()] == [(1,), (2,)]  # type: ignore[attr-defined]
    check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=1)
    over, decided = False, np.zeros(2, dtype=int)
    while not over:
        observation, reward, terminated, truncated, info = env.step({"f0.0": [0.1], "f2.0": [0.0, -0.5]})
        over, decided = terminated or truncated, decided + info["decides"]
        assert reward == pytest.approx(info["rewards"].mean())
    assert env.observation_space.contains(observation)
    assert decided[0] > 2 * decided[1] > 0
    with pytest.raises(ValueError, match="'f1' has no agent"):
        gym.Env(world("cubic", "cubic"), agent={"f0": AGENT}, learners=["f0", "f1"])


def test_how_many_learn_may_be_drawn() -> None:
    draws = {"flows.f0.count": gym.integer(1, 3)}
    env = gym.Env(world("external", "cubic"), agent=AGENT, randomise=draws)
    assert env.action_space.shape == (3, 1)
    seen = set()
    for seed in range(10):
        observation, info = env.reset(seed=seed)
        count = int(info["draw"]["flows.f0.count"])
        assert info["present"].sum() == count
        for _ in range(20):
            observation, reward, _, _, info = env.step(np.ones((3, 1)))
        assert (observation[count:] == 0).all() and not info["decides"][count:].any()
        assert reward == pytest.approx(info["rewards"][:count].mean())
        seen.add(count)
    assert seen == {1, 2, 3}


def test_an_environment_can_be_copied_pickled_and_brought_back() -> None:
    draws = {"links.wire.rate": gym.uniform("2mbit", "10mbit")}
    env = gym.Env(world("external", "cubic"), agent=AGENT, randomise=draws, set={"flows.f1.cc": "bbr"})
    fresh = pickle.loads(pickle.dumps(env))
    env.reset(seed=4)
    random = np.random.default_rng(2)
    for _ in range(30):
        env.step(random.uniform(-1, 1, 1))
    there = env.snapshot()
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), fresh]
    seen, info = fresh.restore(pickle.loads(pickle.dumps(there)))
    assert info["time_s"] == pytest.approx(0.64) and info["draw"]

    def rest(env: gym.Env) -> tuple[Any, ...]:
        random = np.random.default_rng(7)
        rows, over = [], False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(random.uniform(-1, 1, 1))
            over = terminated or truncated
            rows.append((observation.tolist(), reward))
        result = env.result().json
        _, info = env.reset()
        return rows, result, info["draw"], env.np_random.random()

    expected = rest(env)
    assert [rest(copy) for copy in copies] == [expected] * 3
    # Back in the episode that was over.
    env.restore(there)
    assert rest(env)[:3] == expected[:3]
    with pytest.raises(ValueError, match="another environment"):
        gym.Env(world("external", duration="100ms"), agent=AGENT).restore(there)


class _Half(ackclock.CongestionControl):
    """Adds a segment for each window, and halves it at a loss."""

    def on_ack(self, flight: ackclock.Flight, ack: ackclock.Ack) -> None:
        self.cwnd += max(1, ack.acked * flight.mss // self.cwnd)

    def on_signal(self, flight: ackclock.Flight, signal: ackclock.Signal) -> None:
        self.cwnd = max(self.cwnd // 2, 2 * flight.mss)


class _Broken(_Half):
    def on_ack(self, flight: ackclock.Flight, ack: ackclock.Ack) -> None:
        raise ZeroDivisionError("no")


def test_controllers_of_ones_own_run_beside_learners() -> None:
    env = gym.Env(world("external", "half"), agent=AGENT, controllers={"half": _Half})
    env = pickle.loads(pickle.dumps(env))
    _, info = env.reset(seed=3)
    over = False
    while not over:
        _, _, terminated, truncated, _ = env.step([0.0])
        over = terminated or truncated
    flows = env.result().summary["flows"]
    assert flows[1]["cc"] == "half" and flows[1]["goodput_bps"] > 1e5
    env = gym.Env(world("external", "broken"), agent=AGENT, controllers={"broken": _Broken})
    with pytest.raises(ackclock.RunError, match="on_ack raised ZeroDivisionError") as raised:
        env.reset(seed=3)
        for _ in range(100):
            env.step([0.0])
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_policy_that_floods_is_bounded() -> None:
    sent = {}
    for headroom in (4.0, None):
        agent = gym.aurora().with_(headroom=headroom)
        env = gym.Env(world("external", duration="1s"), agent=agent, max_steps=60)
        env.reset(seed=1)
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step([10.0])
            over = terminated or truncated
        flow = env.result().summary["flows"][0]
        sent[headroom] = flow["sent_packets"] / info["time_s"]
    # 8 Mbit/s are 667 full packets a second.
    assert sent[4.0] < 5 * 667 < sent[None], sent


def test_flows_share_with_others() -> None:
    """What is learned is judged as any flow: a window of one segment starves, a large one takes what there is."""
    for other in ("cubic", "bbr"):
        jain = {}
        for action in (-1.0, 1.0):
            agent = AGENT.with_(action=gym.Action.window(2, 400))
            env = gym.Env(world("external", other, duration="6s"), agent=agent)
            env.reset(seed=1)
            over = False
            while not over:
                _, _, terminated, truncated, _ = env.step([action])
                over = terminated or truncated
            flows = env.result().summary["flows"]
            assert [flow["cc"] for flow in flows] == ["external", other]
            jain[action] = flows[0]["goodput_bps"] / sum(flow["goodput_bps"] for flow in flows)
        assert jain[-1.0] < 0.35 < 0.5 < jain[1.0], (other, jain)


def test_an_episode_ends_early() -> None:
    stop = gym.Stop("queueing_delay_s", above=0.02, intervals=2)
    env = gym.Env(world("external"), agent=AGENT, stop=[stop])
    env.reset(seed=1)
    for _ in range(99):
        _, _, terminated, truncated, info = env.step([1.0])
        if terminated:
            break
    assert terminated and not truncated and info["time_s"] < 1.0
    with pytest.raises(ValueError, match="reset"):
        env.step([0.0])
    assert env.result().summary["partial"] is True
    env = gym.Env(world("external"), agent=AGENT, max_steps=5)
    env.reset(seed=1)
    assert [env.step([0.0])[3] for _ in range(5)] == [False] * 4 + [True]
    env = gym.Env(world("external", bytes="50kB"), agent=AGENT)
    assert episode(env, _Nothing(), 1)[1] < 50  # type: ignore[arg-type]


class _Nothing:
    def act(self, _: Any) -> list[float]:
        return [0.0]


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no flow learns"):
        gym.Env(world("cubic"))
    with pytest.raises(ackclock.ScenarioError, match="requires an environment"):
        ackclock.run(world("external"))
    with pytest.raises(ackclock.ScenarioError, match="no link `wrie`"):
        gym.Env(world("external"), randomise={"links.wrie.rate": gym.uniform("1mbit", "2mbit")})
    with pytest.raises(ackclock.ScenarioError, match=r"links\.wire\.delay"):
        gym.Env(world("external"), randomise={"links.wire.delay": gym.uniform("1mbit", "2mbit")})
    with pytest.raises(ValueError, match="not of one unit"):
        gym.Env(world("external"), randomise={"links.wire.delay": gym.uniform("1ms", 2)})
    with pytest.raises(TypeError, match="expected a distribution"):
        gym.Env(world("external"), randomise={"links.wire.delay": "1ms"})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="expected an Agent or one of"):
        gym.Env(world("external"), agent="pcc")
    with pytest.raises(ValueError, match="unknown feature `rtt`"):
        gym.Env(world("external"), agent=AGENT.with_(features=["rtt"]))
    with pytest.raises(ValueError, match="a limit above 0 and bounds"):
        gym.Env(world("external"), agent=AGENT.with_(action=gym.Action.window(0, 10)))
    with pytest.raises(ValueError, match="observation_space"):
        gym.Env(world("external"), observe=lambda features: [1.0])
    with pytest.raises(ValueError, match="at least one thread"):
        gym.VectorEnv(world("external"), 0)
    with pytest.raises(ValueError, match="do not fit"):
        gym.VectorEnv(world("external"), 1_000_000, agent=AGENT.with_(history=1000))
    with pytest.raises(ackclock.ScenarioError, match="one run at a time"):
        gym.Env(world("external") | {"sweep": {"repeat": 2}})
    with pytest.raises(ValueError, match="layer 1 has 3 inputs, and layer 0 has 2 numbers"):
        gym.save(
            tmp_path / "p.json", AGENT, [(np.zeros((2, 6)), [0, 0], "tanh"), (np.zeros((1, 3)), [0], "identity")]
        )
    with pytest.raises(ValueError, match="unknown activation"):
        gym.save(tmp_path / "p.json", AGENT, [(np.zeros((1, 6)), [0], "gelu")])
    with pytest.raises(TypeError, match="expected PPO or A2C"):
        gym.export(object(), tmp_path / "p.json", AGENT)
    cc = {"kind": "policy", "file": str(tmp_path / "p.json")}
    with pytest.raises(ackclock.ScenarioError, match="cannot use .*p.json as a policy"):
        ackclock.run(world("external"), set={"flows.f0.cc": cc})
    env = gym.Env(world("external"), agent=AGENT)
    with pytest.raises(ValueError, match="reset"):
        env.step([0.0])
    with pytest.raises(ValueError, match="reshape"):
        env.reset(seed=1)
        env.step([0.0, 1.0])
    # What is no number changes nothing.
    env.step([float("nan")])


def test_control_c_ends_a_long_step() -> None:
    scenario = world("external", "cubic", duration="1000s")
    scenario["links"]["wire"]["rate"] = "10gbit"
    env = gym.Env(scenario, agent=AGENT.with_(decide="900s"))
    timer = threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        env.reset(seed=1)
    with pytest.raises(ValueError, match="reset"):
        env.step([0.0])
