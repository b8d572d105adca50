"""What hooks of Python cost: processor time of runs that differ by a class alone.

    python benches/own.py

prints ns per ACK (controllers) and per packet (queues) beyond the same run with the built-in
algorithm that decides the same. The ratio is of whole runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from conftest import small  # noqa: E402
from test_own_controllers import Aimd  # noqa: E402
from test_own_queues import CoDel, Fifo, Mine  # noqa: E402

import ackclock  # noqa: E402
from ackclock import Ack, Flight, Verdict  # noqa: E402

LINK = {"rate": "100mbit", "delay": "10ms", "queue": {"kind": "pfifo", "limit": "300p"}}
SCENARIO = small(
    run={"duration": "20s", "seed": 1},
    links={"bottleneck": LINK},
    flows=[{"id": "f", "path": ["bottleneck"], "cc": "newreno", "host": "freebsd-9.2"}],
)


class Nothing(ackclock.CongestionControl):
    """No hook: all of it is Rust."""


class Empty(ackclock.CongestionControl):
    """A hook for every ACK that does nothing: the window stays as it is."""

    def on_arrival(self, flight: Flight, arrival: ackclock.Arrival) -> None:
        pass


class HandsOn(ackclock.CongestionControl):
    """NewReno's reaction, called from Python."""

    def on_ack(self, flight: Flight, ack: Ack) -> Verdict | None:
        return super().on_ack(flight, ack)


def processor_time(run: Callable[[], ackclock.Result]) -> tuple[float, dict[str, Any]]:
    """The least of five, and the summary."""
    best, summary = float("inf"), {}
    for _ in range(5):
        began = time.process_time()
        summary = run().summary
        best = min(best, time.process_time() - began)
    return best, summary


def main() -> None:
    def controller(class_: type[ackclock.CongestionControl]) -> ackclock.Result:
        return ackclock.run(SCENARIO, set={"flows.*.cc": "mine"}, controllers={"mine": class_})

    def queue(class_: type[ackclock.QueueDisc]) -> ackclock.Result:
        # One direction carries the data, and the ACKs are not asked for.
        limits = {"limit": 300} if class_ is Fifo else {}
        return ackclock.run(
            SCENARIO,
            set={"links.bottleneck.queue": {"kind": "mine", **limits}, "links.bottleneck.reverse": {"queue": "pfifo"}},
            queues={"mine": class_},
        )

    rust, summary = processor_time(lambda: ackclock.run(SCENARIO))
    acks = summary["links"][1]["dequeued"]
    print(f"newreno, drop-tail, Rust: {rust:.3f} s, {acks} ACKs, {summary['links'][0]['dequeued']} packets")
    for class_ in (Nothing, Empty, HandsOn, Aimd):
        took, summary = processor_time(lambda class_=class_: controller(class_))  # type: ignore[misc]
        acks = summary["links"][1]["dequeued"]
        print(f"{class_.__name__:8} {took:.3f} s, {took / rust:.2f} times, {(took - rust) / acks * 1e9:.0f} ns per ACK")
    for kind, classes in (("pfifo", (Fifo, Mine)), ("codel", (CoDel,))):
        of = {"kind": kind, "limit": "300p"} if kind == "pfifo" else kind
        rust, _ = processor_time(lambda of=of: ackclock.run(SCENARIO, set={"links.bottleneck.queue": of}))  # type: ignore[misc]
        for class_ in classes:
            took, summary = processor_time(lambda class_=class_: queue(class_))  # type: ignore[misc]
            packets = summary["links"][0]["dequeued"]
            each = (took - rust) / packets * 1e9
            print(f"{class_.__name__:8} {took:.3f} s, {took / rust:.2f} times {kind}, {each:.0f} ns per packet")


if __name__ == "__main__":
    main()
