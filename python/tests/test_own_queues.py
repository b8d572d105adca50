"""Queue disciplines that are classes of Python."""

from __future__ import annotations

import json
import math
from collections import deque
from typing import Any

import pytest
from conftest import small
from hypothesis import given, settings
from hypothesis import strategies as st

import ackclock
from ackclock import NotBefore, Packet

PFIFO = {"kind": "pfifo", "limit": "30p"}


class Fifo(ackclock.QueueDisc):
    """Drop-tail, as the base class has it."""

    limit: float = ackclock.parameter(30, 1, 1000)


class Mine(ackclock.QueueDisc):
    """The same with packets of its own."""

    def __init__(self) -> None:
        self.waiting: deque[Packet] = deque()

    def enqueue(self, now: int, packet: Packet) -> None:
        if len(self.waiting) == 30:
            self.drop(packet, "limit")
        else:
            self.waiting.append(packet)

    def dequeue(self, now: int) -> Packet | NotBefore | None:
        return self.waiting.popleft() if self.waiting else None


class CoDel(ackclock.QueueDisc):
    """RFC 8289, with the law as Linux has it but for the square root, which is exact."""

    target_ms: float = ackclock.parameter(5, 0.001, 1000)
    interval_ms: float = ackclock.parameter(100, 0.001, 10_000)
    limit: float = ackclock.parameter(1000, 1, 1_000_000)

    def __init__(self) -> None:
        self.target, self.interval = int(self.target_ms * 1e6), int(self.interval_ms * 1e6)
        self.first_above = self.drop_next = self.count = self.last_count = 0
        self.dropping = False

    def is_bad(self, now: int, packet: Packet | None) -> bool:
        """Whether the delay has been above the target for an interval."""
        if packet is None or now - packet.arrived_at < self.target or self.bytes <= 1514:
            self.first_above = 0
            return False
        if self.first_above == 0:
            self.first_above = now + self.interval
        return now > self.first_above

    def control_law(self, at: int) -> int:
        return at + int(self.interval / math.sqrt(self.count))

    def dequeue(self, now: int) -> Packet | NotBefore | None:
        packet = self.take()
        bad = self.is_bad(now, packet)
        if self.dropping:
            if not bad:
                self.dropping = False
            while self.dropping and now >= self.drop_next and packet is not None:
                self.count += 1
                self.drop(packet, "delay")
                packet = self.take()
                if not self.is_bad(now, packet):
                    self.dropping = False
                else:
                    self.drop_next = self.control_law(self.drop_next)
        elif bad and packet is not None:
            self.drop(packet, "delay")
            packet = self.take()
            self.is_bad(now, packet)
            self.dropping = True
            delta = self.count - self.last_count
            recent = now - self.drop_next < 16 * self.interval
            self.count = delta if delta > 1 and recent else 1
            self.drop_next = self.control_law(now)
            self.last_count = self.count
        return packet

    def probe(self) -> dict[str, Any]:
        return {"dropping": self.dropping}


def run(class_: type[ackclock.QueueDisc], **more: Any) -> ackclock.Result:
    queue = {"links.bottleneck.queue": {"kind": "mine"}}
    return ackclock.run(small(), set=queue, queues={"mine": class_}, **more)


@pytest.mark.parametrize("class_", [Fifo, Mine])
def test_drop_tail_is_that_of_rust_byte_for_byte(class_: type[ackclock.QueueDisc]) -> None:
    found = run(class_, record=["queue"])
    expected = ackclock.run(small(), record=["queue"])
    assert found.json.replace('"mine"', '"pfifo"') == expected.json
    assert found.records["queue.csv"] == expected.records["queue.csv"]


def test_codel_holds_the_delay() -> None:
    scenario = small(run={"duration": "20s", "seed": 1})
    found = ackclock.run(scenario, set={"links.bottleneck.queue": "codel-py"}, queues={"codel-py": CoDel}, record=["queue"])
    built_in = ackclock.run(scenario, set={"links.bottleneck.queue": "codel"})
    delays = [result.summary["links"][0]["sojourn_ms"]["p50"] for result in (found, built_in)]
    assert delays[0] == pytest.approx(delays[1], rel=0.1)
    assert found.summary["links"][0]["dropped"]["delay"] > 20
    states = found.table("queue.csv").to_dict()["dropping"]
    assert {True, False} <= {bool(state) for state in states if state is not None}


def test_parameters_change_where_there_is_a_hook() -> None:
    seen: list[tuple[int, float]] = []

    class Changes(Fifo):
        def on_change(self, now: int) -> None:
            seen.append((now, self.limit))

    links = json.loads(json.dumps(small()["links"]))
    links["bottleneck"]["queue"] = {"kind": "mine", "limit": 20}
    links["bottleneck"]["schedule"] = [{"at": "1s", "queue": {"limit": 5}}]
    result = ackclock.run(small(links=links), queues={"mine": Changes}, record=["queue"])
    # The other direction has the same queue and the same schedule.
    assert seen == [(1_000_000_000, 5.0)] * 2
    rows = result.table("queue.csv").to_dict()
    backlog = [n for t, n in zip(rows["time_s"], rows["backlog_packets"], strict=True) if float(t) > 1.5]
    assert max(backlog) == 5
    with pytest.raises(ackclock.ScenarioError, match="this discipline has no hook for other parameters"):
        ackclock.load(small(links=links), queues={"mine": Fifo})


def test_a_shaper_holds_packets_back() -> None:
    class Shaper(Fifo):
        """At most one packet in 20 ms."""

        def __init__(self) -> None:
            self.next = 0

        def dequeue(self, now: int) -> Packet | NotBefore | None:
            if len(self) and now < self.next:
                return NotBefore(self.next)
            packet = self.take()
            if packet is not None:
                self.next = now + 20_000_000
            return packet

    result = ackclock.run(small(), set={"links.bottleneck.queue": "mine"}, queues={"mine": Shaper})
    assert 145 <= result.summary["links"][0]["dequeued"] <= 151


def test_marks_reach_the_packets() -> None:
    class Marks(Fifo):
        def enqueue(self, now: int, packet: Packet) -> None:
            assert packet.mark() == (packet.ecn != "not-ect")
            super().enqueue(now, packet)

    flows = [{"id": "f", "path": ["bottleneck"], "cc": "newreno", "ecn": True}]
    result = ackclock.run(small(flows=flows), set={"links.bottleneck.queue": "mine"}, queues={"mine": Marks})
    assert result.summary["links"][0]["marked"] > 100


class Loses(Mine):
    def enqueue(self, now: int, packet: Packet) -> None:
        if packet.number != 17:
            super().enqueue(now, packet)


class Forgets(Mine):
    def dequeue(self, now: int) -> Packet | NotBefore | None:
        return super().dequeue(now) if now < 1_000_000_000 else None


class Repeats(Mine):
    def dequeue(self, now: int) -> Packet | NotBefore | None:
        packet = super().dequeue(now)
        if isinstance(packet, Packet) and packet.number == 20:
            self.waiting.append(packet)
        return packet


class DropsTwice(Mine):
    def enqueue(self, now: int, packet: Packet) -> None:
        self.drop(packet)
        self.drop(packet)


class DropsAndSends(Mine):
    def dequeue(self, now: int) -> Packet | NotBefore | None:
        packet = super().dequeue(now)
        if isinstance(packet, Packet):
            self.drop(packet)
        return packet


class HoldsBackNothing(Mine):
    def dequeue(self, now: int) -> Packet | NotBefore | None:
        return NotBefore(now + 1)


class NotLater(Mine):
    def dequeue(self, now: int) -> Packet | NotBefore | None:
        return NotBefore(now)


class Says(Mine):
    def dequeue(self, now: int) -> Any:
        return 3


class Raises(Mine):
    def enqueue(self, now: int, packet: Packet) -> None:
        raise ZeroDivisionError("too much")


class Reason(Mine):
    def enqueue(self, now: int, packet: Packet) -> None:
        self.drop(packet, "bored")  # type: ignore[arg-type]


class Probes(Fifo):
    def probe(self) -> dict[str, Any]:
        return {"p": 1.0}


@pytest.mark.parametrize(
    ("class_", "text"),
    [
        (Loses, "has lost 1 packets, first packet 17"),
        (Forgets, "at 1.0.*says that nothing waits, of .* packets that it has neither given out nor dropped"),
        (Repeats, "gives out packet 20, which it no longer has"),
        (DropsTwice, "drops packet 0, which it no longer has"),
        (DropsAndSends, "gives out packet 0, which it no longer has"),
        (NotLater, "holds packets back until a time that is not later than now"),
        (Says, "dequeue raised TypeError: dequeue: expected a Packet, NotBefore"),
        (Raises, "enqueue raised ZeroDivisionError: too much"),
        (Reason, "enqueue raised ValueError: reason: expected one of limit, early"),
        (Probes, "probe raised ValueError: probe: expected probability, average, delay, dropping"),
    ],
)
def test_each_broken_rule_is_named(class_: type[ackclock.QueueDisc], text: str) -> None:
    with pytest.raises(ackclock.RunError, match="run 0 failed: link bottleneck.forward, at .*`mine`") as caught:
        run(class_, record=["queue"])
    assert caught.match(text)


def test_one_that_holds_back_for_ever_stops_its_link_and_no_run() -> None:
    class Never(Mine):
        def dequeue(self, now: int) -> Packet | NotBefore | None:
            return NotBefore(now + 1_000_000_000_000) if self.waiting else None

    result = run(Never)
    assert result.summary["links"][0]["dequeued"] == 0


ACTIONS = ["fifo", "lifo", "lose", "repeat", "drop", "drop twice", "drop later", "mark", "none", "hold", "raise", "wrong"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=40), st.integers(0, 3))
def test_whatever_a_class_does_each_packet_ends_once(actions: list[str], seed: int) -> None:
    class Random(ackclock.QueueDisc):
        def __init__(self) -> None:
            self.waiting: list[Packet] = []
            self.turn = 0

        def next(self) -> str:
            self.turn += 1
            return actions[self.turn % len(actions)]

        def enqueue(self, now: int, packet: Packet) -> None:
            action = self.next()
            if action == "drop" or len(self.waiting) > 50:
                self.drop(packet, "limit")
            elif action == "drop twice":
                self.drop(packet)
                self.drop(packet)
            elif action == "raise":
                raise RuntimeError("on purpose")
            elif action != "lose":
                if action == "mark":
                    packet.mark()
                self.waiting.append(packet)

        def dequeue(self, now: int) -> Any:
            action = self.next()
            if not self.waiting:
                return None
            if action == "drop later" and len(self.waiting) > 1:
                self.drop(self.waiting.pop(0), "delay")
            if action == "none":
                return None
            if action == "hold":
                return NotBefore(now + 1000)
            if action == "wrong":
                return "packet"
            if action == "repeat":
                return self.waiting[-1]
            return self.waiting.pop(-1 if action == "lifo" else 0)

    scenario = small(run={"duration": "1s", "seed": seed})
    try:
        result = ackclock.run(scenario, set={"links.bottleneck.queue": "mine"}, queues={"mine": Random})
    except ackclock.RunError as error:
        assert "the queue discipline `mine`" in str(error)
        return
    harmful = {"lose", "repeat", "none", "wrong", "raise", "drop twice"}
    for link in result.summary["links"]:
        dropped = sum(link["dropped"].values())
        # What has come and is neither there nor gone still waits: no more than may wait.
        waits = link["enqueued"] - link["dequeued"]
        assert 0 <= waits <= 51 + dropped
    if set(actions) <= harmful - {"none"}:
        raise AssertionError("nothing but harm, and nobody has noticed")


def test_wrong_classes_are_refused() -> None:
    for queues, text in (
        ({"codel": Fifo}, "`codel` is no name"),
        ({"mine": ackclock.CongestionControl}, "expected a subclass of ackclock.QueueDisc"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            ackclock.load(small(), queues=queues)  # type: ignore[arg-type]


def test_queues_are_values_of_sweeps() -> None:
    sweep = ackclock.sweep(
        small(),
        points=[{"links.bottleneck.queue": kind} for kind in ("pfifo", "codel", "mine")],
        queues={"mine": Mine},
        progress=False,
    )
    assert sweep.failed == 0
    frame = sweep.frame
    assert set(frame["links.bottleneck.queue"]) == {"pfifo", "codel", "mine"}
