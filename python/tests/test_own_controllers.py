"""Congestion controllers that are classes of Python."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, small

import ackclock
from ackclock import Ack, Flight, Signal, Verdict


class Reno(ackclock.CongestionControl):
    """NewReno as it is."""


class Aimd(ackclock.CongestionControl):
    """The controller of crates/cli/examples/own_controller.rs."""

    target_ms: float = ackclock.parameter(10, 0.001, 10_000)
    beta: float = ackclock.parameter(0.8, 0.1, 0.99)

    def on_established(self, flight: Flight) -> None:
        self.shortest: int | None = None
        self.too_long = self.backing_off = False
        super().on_established(flight)

    def on_rtt_sample(self, flight: Flight) -> None:
        if flight.latest_rtt is not None and (self.shortest is None or flight.latest_rtt < self.shortest):
            self.shortest = flight.latest_rtt

    def on_round(self, flight: Flight, round: int) -> None:
        shortest, self.shortest = self.shortest, None
        if shortest is not None and flight.min_rtt is not None:
            self.too_long = shortest > flight.min_rtt + int(self.target_ms * 1e6)

    def on_ack(self, flight: Flight, ack: Ack) -> Verdict | None:
        too_long, self.too_long = self.too_long, False
        if not too_long or self.backing_off:
            return super().on_ack(flight, ack)
        self.cwnd = min(max(int(self.cwnd * self.beta), 2 * flight.mss), self.cwnd)
        self.ssthresh = max(self.cwnd, 2 * flight.mss)
        self.backing_off = True
        return Verdict.REDUCED

    def on_signal(self, flight: Flight, signal: Signal) -> None:
        self.backing_off = False
        super().on_signal(flight, signal)

    def on_recovery_end(self, flight: Flight) -> None:
        self.backing_off = False
        super().on_recovery_end(flight)


def run(class_: type[ackclock.CongestionControl], **more: Any) -> ackclock.Result:
    """Both flows of the small scenario with a class."""
    return ackclock.run(small(), set={"flows.*.cc": "mine"}, controllers={"mine": class_}, **more)


def renamed(result: ackclock.Result) -> str:
    return result.json.replace('"mine"', '"newreno"')


def test_an_empty_class_is_newreno_byte_for_byte() -> None:
    expected = ackclock.run(small(), set={"flows.*.cc": "newreno"}).json
    assert renamed(run(Reno)) == expected


def test_hooks_that_hand_on_change_nothing() -> None:
    class All(ackclock.CongestionControl):
        def on_established(self, flight: Flight) -> None:
            super().on_established(flight)

        def take_over(self, cwnd: int, ssthresh: int) -> None:
            super().take_over(cwnd, ssthresh)

        def on_ack(self, flight: Flight, ack: Ack) -> Verdict | None:
            return super().on_ack(flight, ack)

        def on_signal(self, flight: Flight, signal: Signal) -> None:
            super().on_signal(flight, signal)

        def on_recovery_end(self, flight: Flight) -> None:
            super().on_recovery_end(flight)

        def on_idle_restart(self, flight: Flight) -> None:
            super().on_idle_restart(flight)

        def on_arrival(self, flight: Flight, arrival: ackclock.Arrival) -> None:
            super().on_arrival(flight, arrival)

        def on_ecn(self, feedback: str) -> None:
            super().on_ecn(feedback)

        def on_sent(self, flight: Flight, sent: ackclock.Sent) -> None:
            super().on_sent(flight, sent)

    assert renamed(run(All)) == ackclock.run(small(), set={"flows.*.cc": "newreno"}).json


def test_a_contained_controller_is_the_built_in_one() -> None:
    class Contains(ackclock.CongestionControl):
        def __init__(self) -> None:
            self.inner = ackclock.cc("cubic")

        def copy(self) -> None:
            self.cwnd, self.ssthresh = self.inner.cwnd, self.inner.ssthresh

        def on_established(self, flight: Flight) -> None:
            self.inner.on_established(flight)
            self.copy()

        def take_over(self, cwnd: int, ssthresh: int) -> None:
            self.inner.take_over(cwnd, ssthresh)
            self.copy()

        def on_ack(self, flight: Flight, ack: Ack) -> Verdict | None:
            verdict = self.inner.on_ack(flight, ack)
            self.copy()
            return verdict

        def on_sample(self, flight: Flight, rtt: int, cwnd: int) -> None:
            self.inner.on_sample(flight, rtt, cwnd)
            self.copy()

        def on_signal(self, flight: Flight, signal: Signal) -> None:
            self.inner.on_signal(flight, signal)
            self.copy()

        def on_recovery_end(self, flight: Flight) -> None:
            self.inner.on_recovery_end(flight)
            self.copy()

        def on_idle_restart(self, flight: Flight) -> None:
            self.inner.on_idle_restart(flight)
            self.copy()

    found = run(Contains).json.replace('"mine"', '"cubic"')
    assert found == ackclock.run(small(), set={"flows.*.cc": "cubic"}).json
    with pytest.raises(ackclock.ScenarioError, match="did you mean `cubic`"):
        ackclock.cc("cubci")
    with pytest.raises(ackclock.ScenarioError, match="has no key `bta`"):
        ackclock.cc("cubic", bta=1)


def test_the_same_law_in_rust_and_in_python_gives_the_same_bytes() -> None:
    program = os.environ.get("ACKCLOCK_OWN_CONTROLLER")
    if program is None:
        pytest.skip("ACKCLOCK_OWN_CONTROLLER does not name the example program own_controller")
    file = ROOT / "crates" / "cli" / "examples" / "own_controller.toml"
    done = subprocess.run([program, "--scenario", file, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sweep = ackclock.sweep(file, controllers={"aimd": Aimd}, progress=False)
    assert sweep.json == done.stdout


def test_parameters_are_keys_of_the_scenario() -> None:
    seen = []

    class Shown(ackclock.CongestionControl):
        beta: float = ackclock.parameter(0.7, 0.1, 0.99)

        def __init__(self) -> None:
            seen.append(self.beta)

    assert Shown().beta == 0.7
    seen.clear()
    controllers = {"mine": Shown}
    sweep = ackclock.sweep(
        small(),
        set={"flows.*.cc": "mine"},
        points=[{"flows.reno.cc.beta": beta} for beta in (0.3, 0.9)],
        controllers=controllers,
        progress=False,
    )
    assert sweep.failed == 0 and {0.3, 0.9, 0.7} == {*seen}
    resolved = ackclock.load(small(), set={"flows.*.cc": "mine"}, controllers=controllers).resolved()
    assert 'cc = { kind = "mine", beta = 0.7 }' in resolved
    with pytest.raises(ackclock.ScenarioError, match="expected a number from 0.1 to 0.99"):
        ackclock.load(small(), set={"flows.*.cc": {"kind": "mine", "beta": 1}}, controllers=controllers)
    with pytest.raises(ackclock.ScenarioError, match="did you mean `beta`"):
        ackclock.load(small(), set={"flows.*.cc": {"kind": "mine", "btea": 1}}, controllers=controllers)
    with pytest.raises(ackclock.ScenarioError, match="did you mean `mine`"):
        ackclock.load(small(), set={"flows.*.cc": "mien"}, controllers=controllers)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((math.nan, 0, 1), ValueError), ((2, 0, 1), ValueError), ((0, 0, math.inf), ValueError), (("a", 0, 1), TypeError)],
)
def test_wrong_parameters_are_refused(arguments: tuple[Any, Any, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="parameter"):
        ackclock.parameter(*arguments)


@pytest.mark.parametrize(
    ("controllers", "error", "text"),
    [
        ({"cubic": Reno}, ValueError, "`cubic` is no name.*a built-in one has it"),
        ({"mine": type("Wrong", (Reno,), {"on_ak": lambda self, ack: None})}, TypeError, "on_ak is no hook.*on_ack"),
        ({"mine": type("Wrong", (Reno,), {"on_loss": lambda self: None})}, TypeError, "on_loss is no hook"),
        ({"": Reno}, ValueError, "is no name"),
        ({"a b": Reno}, ValueError, "is no name"),
        ({"mine": int}, TypeError, "expected a subclass of ackclock.CongestionControl"),
        ({"mine": Reno()}, TypeError, "expected a subclass of ackclock.CongestionControl"),
        ({"mine": ackclock.QueueDisc}, TypeError, "expected a subclass of ackclock.CongestionControl"),
        ({1: Reno}, TypeError, "expected a string"),
        ([Reno], TypeError, "expected a dict"),
        ({"mine": type("Wrong", (Reno,), {"ecn": "most"})}, ValueError, 'expected "data", "all" or "scalable"'),
        ({"mine": type("Wrong", (Reno,), {"whole_control": 3})}, TypeError, "expected True or False"),
    ],
)
def test_wrong_classes_are_refused(controllers: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ackclock.load(small(), controllers=controllers)


def after_a_second(value: Any) -> type[ackclock.CongestionControl]:
    class Sets(ackclock.CongestionControl):
        def on_ack(self, flight: Flight, ack: Ack) -> Verdict | None:
            if flight.now > 1_000_000_000:
                self.cwnd = value
                return None
            return super().on_ack(flight, ack)

    return Sets


@pytest.mark.parametrize(
    ("value", "cause", "text"),
    [
        (1.5, TypeError, "expected whole bytes, found 1.5"),
        (math.nan, TypeError, "expected whole bytes, found nan"),
        ("many", TypeError, "expected whole bytes, found 'many'"),
        (None, TypeError, "expected whole bytes, found None"),
        (-1, ValueError, "found -1"),
        (0, ValueError, "found 0"),
        (1 << 70, ValueError, "found 1180591620717411303424"),
        (100, None, "has set a window of"),
    ],
)
def test_wrong_windows_are_errors_with_a_place(value: Any, cause: type[Exception] | None, text: str) -> None:
    with pytest.raises(ackclock.RunError, match=text) as caught:
        run(after_a_second(value))
    said = str(caught.value)
    assert "flow reno.0, at 1.0" in said and "the congestion controller `mine`: on_ack" in said
    if cause is None:
        assert caught.value.__cause__ is None
    else:
        assert type(caught.value.__cause__) is cause
        # With the traceback of the hook.
        assert caught.value.__cause__.__traceback__ is not None
        assert Path(__file__).name in said


def test_an_exception_of_a_hook_ends_the_run() -> None:
    class Broken(ackclock.CongestionControl):
        def on_signal(self, flight: Flight, signal: Signal) -> None:
            raise LookupError("nothing found")

    with pytest.raises(ackclock.RunError, match="on_signal raised LookupError: nothing found") as caught:
        run(Broken)
    assert isinstance(caught.value.__cause__, LookupError)
    # In a sweep the others go on.
    sweep = ackclock.sweep(
        small(),
        points=[{"flows.reno.cc": cc} for cc in ("newreno", "mine")],
        controllers={"mine": Broken},
        progress=False,
    )
    assert sweep.failed == 1
    assert "LookupError: nothing found" in sweep.runs["error"].iloc[1]


def test_a_class_that_cannot_be_made_is_an_error() -> None:
    class Wants(ackclock.CongestionControl):
        def __init__(self, more: int) -> None:
            self.more = more

    with pytest.raises(ackclock.RunError, match="__init__ raised TypeError"):
        run(Wants)


def test_a_failure_survives_another_controller_that_takes_over() -> None:
    flows = [{"id": "f", "path": ["bottleneck"], "cc": "mine", "schedule": [{"at": "2s", "cc": "newreno"}]}]
    with pytest.raises(ackclock.RunError, match="flow f.0, at 1.0"):
        ackclock.run(small(flows=flows), controllers={"mine": after_a_second(-1)})


def test_wrong_verdicts_and_rates_are_errors() -> None:
    class Answers(ackclock.CongestionControl):
        def on_ack(self, flight: Flight, ack: Ack) -> Any:
            return "reduced"

    with pytest.raises(ackclock.RunError, match="on_ack: expected None or a Verdict, found 'reduced'"):
        run(Answers)
    for rate in (-1, 0, 1e6, "fast"):

        class Paces(ackclock.CongestionControl):
            def pacing_rate(self, flight: Flight) -> Any:
                return rate  # noqa: B023

        with pytest.raises(ackclock.RunError, match="pacing_rate: expected None or whole bit/s above zero"):
            run(Paces)


def test_a_rate_paces() -> None:
    class Paces(ackclock.CongestionControl):
        def pacing_rate(self, flight: Flight) -> int:
            return 500_000

    result = ackclock.run(small(), set={"flows.reno.cc": "mine"}, controllers={"mine": Paces})
    assert 400_000 < result.summary["flows"][0]["goodput_bps"] < 500_000


def test_what_is_not_overridden_is_not_asked_for() -> None:
    calls: dict[str, int] = {}

    class Counts(ackclock.CongestionControl):
        def on_round(self, flight: Flight, round: int) -> None:
            calls["round"] = calls.get("round", 0) + 1
            assert round == calls["round"] or round == 1

        def on_lost(self, flight: Flight, lost: ackclock.Lost) -> None:
            calls["lost"] = calls.get("lost", 0) + 1
            assert lost.bytes > 0 and lost.total_lost > 0

        def on_ack(self, flight: Flight, ack: Ack) -> Verdict | None:
            assert ack.rate is None or ack.rate.total_delivered > 0
            calls["rate"] = calls.get("rate", 0) + (ack.rate is not None)
            return super().on_ack(flight, ack)

    ackclock.run(small(), set={"flows.reno.cc": "mine"}, controllers={"mine": Counts})
    assert calls["round"] > 10 and calls["lost"] > 0 and calls["rate"] > 100


def test_objects_cannot_be_changed_and_are_shown() -> None:
    shown: list[str] = []

    class Looks(ackclock.CongestionControl):
        def on_ack(self, flight: Flight, ack: Ack) -> Verdict | None:
            if not shown:
                shown.extend([repr(flight), repr(ack)])
                with pytest.raises(AttributeError):
                    flight.now = 3  # type: ignore[misc]
            return super().on_ack(flight, ack)

    run(Looks)
    assert shown[0].startswith("Flight(now=") and "cwnd_limited=True" in shown[0]
    assert "acked=1448" in shown[1] and "rate=None" in shown[1]


class Draws(ackclock.CongestionControl):
    """Loses a little of its growth at random."""

    def on_ack(self, flight: Flight, ack: Ack) -> Verdict | None:
        verdict = super().on_ack(flight, ack)
        if self.random.random() < 0.1:
            self.cwnd = max(self.cwnd - self.random.randrange(flight.mss), 2 * flight.mss)
        return verdict


def test_runs_repeat_and_each_flow_draws_its_own_numbers() -> None:
    first, again = run(Draws, seed=1).json, run(Draws, seed=1).json
    random.random()
    assert first == again != run(Draws, seed=2).json
    sweep = {"sweep": {"repeat": 4}}
    lines = [
        ackclock.sweep(
            small(**sweep), set={"flows.*.cc": "mine"}, controllers={"mine": Draws}, threads=threads, progress=False
        ).json
        for threads in (None, 3)
    ]
    assert lines[0] == lines[1]


def test_runs_in_several_threads_are_those_of_one() -> None:
    expected = [run(Draws, seed=seed).json for seed in range(4)]
    found: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda seed=seed: found.update({seed: run(Draws, seed=seed).json})) for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in range(4)] == expected


def test_other_threads_of_python_go_on() -> None:
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.wait(0.002):
            ticks[0] += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    began = time.monotonic()
    ackclock.run(
        small(run={"duration": "300s", "seed": 1}), set={"flows.*.cc": "mine"}, controllers={"mine": Aimd}
    )
    took = time.monotonic() - began
    stop.set()
    ticker.join()
    assert ticks[0] >= 10 * took


PREAMBLE = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from conftest import small
import ackclock
def soon():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
"""


def program(body: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(body)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def test_ctrl_c_ends_a_hook_that_loops() -> None:
    said = program("""
        ended = []
        class Loops(ackclock.CongestionControl):
            def on_ack(self, flight, ack):
                try:
                    while True:
                        pass
                finally:
                    ended.append(True)
        threading.Thread(target=soon, daemon=True).start()
        try:
            ackclock.run(small(), set={"flows.*.cc": "mine"}, controllers={"mine": Loops})
        except KeyboardInterrupt:
            # The hook ends too, a moment later.
            for _ in range(100):
                if ended:
                    break
                time.sleep(0.05)
            print(ended)
    """)
    assert said == "[True]\n"


@pytest.mark.parametrize("hook", ["pass", "time.sleep(0.001)", "self.cwnd += 1"])
def test_the_interpreter_may_end_while_runs_go_on(hook: str) -> None:
    said = program(f"""
        class Mine(ackclock.CongestionControl):
            def on_ack(self, flight, ack):
                {hook}
        def go():
            ackclock.run(small(run={{"duration": "100000s"}}), set={{"flows.*.cc": "mine"}}, controllers={{"mine": Mine}})
        for _ in range(3):
            threading.Thread(target=go, daemon=True).start()
        time.sleep(0.5)
        print("over")
    """)
    assert said == "over\n"


def test_classes_go_to_other_processes_by_value() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    expected = run(Draws).json

    class Local(Draws):
        beta: float = ackclock.parameter(0.7, 0.1, 0.99)

    carried = cloudpickle.loads(cloudpickle.dumps({"mine": Local}))
    assert ackclock.run(small(), set={"flows.*.cc": "mine"}, controllers=carried).json == expected


def test_results_tell_the_name_of_the_class(command_line: Callable[..., str]) -> None:
    flows = json.loads(run(Aimd).json)["flows"]
    assert [flow["cc"] for flow in flows] == ["mine", "mine"]
