"""Sweeps on a cluster, and into a directory: the bytes of one machine, whatever happens on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow as pa
import pytest
from conftest import SMOKE, small

import ackclock
from ackclock import _cluster, _pieces, _store, _stored, _worker

distributed: Any = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as made:
        yield made


@pytest.fixture(autouse=True)
def two_workers(request: pytest.FixtureRequest) -> None:
    """Those that a test has killed are back."""
    if "client" in request.fixturenames:
        request.getfixturevalue("client").wait_for_workers(2, timeout=60)


def many(runs: int, duration: str = "1s") -> dict[str, Any]:
    return small(run={"duration": duration, "seed": 7}, sweep={"repeat": runs})


def adaptive() -> dict[str, Any]:
    scenario = small()
    scenario["links"]["bottleneck"]["loss"] = {"kind": "iid", "probability": 0.01}
    until = {"metric": "flows.reno.0.goodput_bps", "ci95": 0.15}
    axes = {"links.bottleneck.delay": ["5ms", "20ms", "7ms", "9ms"]}
    scenario["sweep"] = {"axes": axes, "repeat": {"min": 5, "max": 30, "until": until}}
    scenario["expect"] = [{"metric": "flows.reno.0.goodput_bps", "reduce": "sum", "at_least": 1_000_000}]
    return scenario


def failing() -> dict[str, Any]:
    """More points than are read in advance; among the others is one whose flow begins after the end."""
    starts = [f"{n}ms" for n in range(1, 202) if n != 200]
    durations = [f"{n}ms" for n in range(202, 402)]
    starts[101], durations[101] = "200ms", "200ms"
    return small(sweep={"axes": {"flows.cubic.start": starts, "run.duration": durations}})


SCENARIOS: dict[str, Any] = {
    "expectations": SMOKE / "sweep.toml",
    "one run": small(),
    "runs": many(200),
    "adaptive": adaptive(),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_cluster_gives_the_bytes_of_one_machine(name: str, client: Any, tmp_path: Path) -> None:
    expected = ackclock.sweep(SCENARIOS[name], progress=False)
    sweep = ackclock.sweep(SCENARIOS[name], progress=False, client=client)
    assert sweep.json == expected.json
    assert sweep.frame.equals(expected.frame) and sweep.expectations.equals(expected.expectations)
    for where, with_client in (("here", None), ("there", client)):
        stored = ackclock.sweep(SCENARIOS[name], progress=False, client=with_client, out=tmp_path / where)
        assert isinstance(stored, ackclock.StoredSweep)
        assert stored.json == expected.json and len(stored) == len(expected)
        for part in ("flows", "links", "runs", "groups", "expectations"):
            ours, theirs = pa.table(stored.table(part)), pa.table(expected.table(part))
            assert ours.equals(theirs), part
        assert stored[-1].json == expected[-1].json and list(stored.lines()) == expected.json.splitlines()
    if name != "one run":
        assert ackclock.read(tmp_path / "there").frame.equals(expected.frame)  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore:a part of the runs")
@pytest.mark.parametrize("part", [{"only": "0-1,5"}, {"shard": "1/3"}])
def test_parts_of_a_sweep_too(part: dict[str, str], client: Any, tmp_path: Path) -> None:
    for scenario in (SMOKE / "sweep.toml", adaptive()):
        arguments: dict[str, Any] = {"progress": False, **part}
        expected = ackclock.sweep(scenario, **arguments)
        assert ackclock.sweep(scenario, client=client, **arguments).json == expected.json
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        assert ackclock.sweep(scenario, client=client, out=out, **arguments).json == expected.json


def test_failed_runs_are_those_of_one_machine(client: Any, tmp_path: Path) -> None:
    scenario = failing()
    wrong = 101 * 200 + 101
    arguments: dict[str, Any] = {"progress": False, "only": f"{wrong - 20}-{wrong + 20}"}
    expected = ackclock.sweep(scenario, **arguments)
    sweep = ackclock.sweep(scenario, client=client, **arguments)
    stored = ackclock.sweep(scenario, client=client, out=tmp_path / "out", **arguments)
    assert stored.failed == sweep.failed == expected.failed == 1
    assert sweep.json == stored.json == expected.json
    assert "starts when the run is over" in expected[20].summary["error"]


def test_records_come_along(client: Any, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"progress": False, "record": {"series": "1s"}}
    expected = ackclock.sweep(SMOKE / "sweep.toml", **arguments)
    found = ackclock.sweep(SMOKE / "sweep.toml", client=client, **arguments)
    stored = ackclock.sweep(SMOKE / "sweep.toml", client=client, out=tmp_path / "out", **arguments)
    for run in range(len(expected)):
        records = dict(expected[run].records)
        assert list(records) == ["series.csv"]
        assert dict(found[run].records) == dict(stored[run].records) == records


def test_files_of_the_scenario_are_sent_along(client: Any, tmp_path: Path) -> None:
    trace = tmp_path / "some.trace"
    trace.write_text("1\n2\n4\n9\n")
    scenario = tmp_path / "scenario.toml"
    plain = small(sweep={"repeat": 8})
    plain["links"]["bottleneck"] = {"delay": "5ms", "trace": {"file": "some.trace"}}
    from ackclock import _toml

    scenario.write_text(_toml.document(plain))
    loaded = ackclock.load(scenario)
    expected = ackclock.sweep(loaded, progress=False)
    parcel = _worker.Parcel.of(loaded)
    # The workers are on this machine, and would find it.
    trace.unlink()
    read = _worker._Loaded(parcel.data)
    assert read.scenario.resolved() == loaded.resolved()
    trace.write_text("1\n2\n4\n9\n")
    assert ackclock.sweep(scenario, progress=False, client=client).json == expected.json
    out = tmp_path / "out"
    assert ackclock.sweep(scenario, progress=False, client=client, out=out).json == expected.json
    trace.write_text("1\n2\n4\n8\n")
    with pytest.raises(FileExistsError, match=r"other contents of the file some\.trace"):
        ackclock.sweep(scenario, progress=False, out=out)


def test_classes_of_python_go_to_the_workers(client: Any) -> None:
    class Gentle(ackclock.CongestionControl):
        beta: float = ackclock.parameter(0.9, 0.1, 0.99)

        def on_signal(self, flight: ackclock.Flight, signal: ackclock.Signal) -> None:
            before = self.cwnd
            super().on_signal(flight, signal)
            if signal.kind == "loss":
                self.ssthresh = max(int(before * self.beta), self.ssthresh)

    scenario = many(4, "5s")
    found = ackclock.load(scenario, set={"flows.*.cc": "gentle"}, controllers={"gentle": Gentle})
    expected = ackclock.sweep(found, progress=False)
    assert ackclock.sweep(found, progress=False, client=client).json == expected.json
    assert ackclock.sweep(scenario, progress=False).json != expected.json


def test_a_worker_that_is_killed_changes_nothing(
    cluster: Any, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = many(700, "5s")
    expected = ackclock.sweep(scenario, progress=False)
    before = set(client.nthreads())
    victims = list(client.run(os.getpid).values())
    take_in = _store.Store.add

    def kill_halfway(self: _store.Store, piece: _pieces.Piece) -> None:
        take_in(self, piece)
        if len(victims) == 2 and self.reached[0] > 350:
            os.kill(victims.pop(), signal.SIGKILL)

    monkeypatch.setattr(_store.Store, "add", kill_halfway)
    stored = ackclock.sweep(scenario, progress=False, client=client, out=tmp_path / "out")
    client.wait_for_workers(2, timeout=60)
    assert len(victims) == 1 and set(client.nthreads()) != before, "no worker was killed"
    assert stored.json == expected.json
    link = cluster.dashboard_link
    assert "127.0.0.1" in link
    with urlopen(link, timeout=20) as page:
        assert page.status == 200


def test_a_run_that_kills_workers_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = many(40, "200ms")
    expected = ackclock.sweep(scenario, progress=False).json.splitlines()
    monkeypatch.setattr(_cluster, "work", deadly)
    # Of its own: what is killed so often may not come back.
    workers: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1}
    with (
        distributed.LocalCluster(**workers, host="127.0.0.1", dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run_on_scheduler(_one_failure)
        sweep = ackclock.sweep(scenario, progress=False, client=client)
    assert sweep.failed == 1 and len(sweep) == 40
    assert "workers that did it were lost, 2 times" in sweep[17].summary["error"]
    found = sweep.json.splitlines()
    assert found[:17] + found[18:] == expected[:17] + expected[18:]


def _one_failure(dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = 1


def deadly(*arguments: Any) -> Any:
    """Dies of run 17."""
    start, stop = arguments[-2:]
    if start <= 17 < stop:
        # A worker that dies before its nanny knows that it lives is not started again; a busy machine
        # takes a second for that.
        time.sleep(2)
        os.kill(os.getpid(), signal.SIGKILL)
    return _worker.work(*arguments)


def test_a_worker_of_another_version_does_nothing(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = _worker.Version("9.9.9", "0123456789abcdef", 1)
    monkeypatch.setattr(_cluster, "VERSION", other)
    with pytest.raises(ackclock.RunError, match=r"here it is 9\.9\.9.*worker tcp://127\.0\.0\.1:\d+ has "):
        ackclock.sweep(many(4), progress=False, client=client)
    # One that came later looks itself.
    monkeypatch.setattr(_cluster.Cluster, "_check_versions", lambda self: None)
    with pytest.raises(ackclock.RunError, match=r"worker tcp://127\.0\.0\.1:\d+ has 0\.1\.0 \(build "):
        ackclock.sweep(many(4), progress=False, client=client)


def test_what_is_no_client_is_refused(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"expected a distributed\.Client, or the address"):
        ackclock.sweep(many(2), progress=False, client=17)  # type: ignore[arg-type]

    async def asynchronous() -> None:
        async with distributed.Client(cluster.scheduler_address, asynchronous=True) as client:
            with pytest.raises(TypeError, match="asynchronous"):
                ackclock.sweep(many(2), progress=False, client=client)

    import asyncio

    asyncio.run(asynchronous())
    expected = ackclock.sweep(many(20), progress=False).json
    assert ackclock.sweep(many(20), progress=False, client=cluster.scheduler_address, threads=1).json == expected
    with pytest.raises(ValueError, match="threads: expected at least 1"):
        ackclock.sweep(many(20), progress=False, client=cluster.scheduler_address, threads=0)
    with pytest.raises(ValueError, match="threads: expected at least 1"):
        ackclock.sweep(many(20), progress=False, out=tmp_path / "out", threads=0)


PREAMBLE = """
import os, signal, sys, threading, time
sys.path.insert(0, {tests!r})
import ackclock
from test_dask import many
out, address = {out!r}, {address!r}
"""


def program(body: str, out: Path, address: str | None) -> subprocess.Popen[str]:
    text = PREAMBLE.format(tests=str(Path(__file__).parent), out=str(out), address=address) + textwrap.dedent(body)
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_sweep_whose_process_was_killed_is_resumed(
    where: str, cluster: Any, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    scenario = many(600, "5s")
    body = """
        from ackclock import _store, _sweeping
        _sweeping._SECONDS, _sweeping._MOST_LINES = 0.05, 50
        take_in = _store.Store.add
        def stuck(store, piece):
            take_in(store, piece)
            if store._at > 100:
                time.sleep(60)
        _store.Store.add = stuck
        ackclock.sweep(many(600, "5s"), progress=False, client=address, out=out)
    """
    writer = program(body, out, cluster.scheduler_address if where == "there" else None)
    summaries = out / ".summary.jsonl.partial"
    until = time.monotonic() + 50
    while written(summaries) <= 100 and writer.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    # Meanwhile nobody else writes there.
    with pytest.raises(BlockingIOError, match="Another process writes"):
        ackclock.sweep(scenario, progress=False, out=out)
    writer.kill()
    writer.communicate()
    with pytest.raises(ackclock.RunError, match="not complete"):
        ackclock.read(out)
    before = summaries.read_bytes()
    # A line that was not complete is done again.
    summaries.write_bytes(before + b'{"schema":1,"title":"ha')
    begun: list[tuple[int, int]] = []
    gaps: Any = _store.Store.__dict__["gaps"]

    def noted(store: _store.Store) -> list[tuple[int, int]]:
        places: list[tuple[int, int]] = gaps.fget(store)
        begun.extend(places)
        return places

    monkeypatch.setattr(_store.Store, "gaps", property(noted))
    stored = ackclock.sweep(scenario, progress=False, client=client if where == "there" else None, out=out)
    assert begun == [(len(before.splitlines()), 600)], "a run was done again"
    assert stored.json.encode().startswith(before) and stored.json == ackclock.sweep(scenario, progress=False).json


def written(summaries: Path) -> int:
    return summaries.read_bytes().count(b"\n") if summaries.exists() else 0


def test_another_sweep_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ackclock.sweep(many(3), progress=False, out=out)
    with pytest.raises(FileExistsError, match=r"`sweep\.repeat` is 3 there and 4 here"):
        ackclock.sweep(many(4), progress=False, out=out)
    with pytest.raises(FileExistsError, match="`run.seed` is 7 there and 8 here"):
        ackclock.sweep(many(3), seed=8, progress=False, out=out)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ackclock.sweep(many(3), progress=False, out=out, resume=False)
    manifest = out / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"ackclock": "0.1.0"', '"ackclock": "0.0.9"'))
    with pytest.raises(FileExistsError, match=r"written by ackclock 0\.0\.9; this is 0\.1\.0"):
        ackclock.sweep(many(3), progress=False, out=out)
    stored = ackclock.sweep(many(4), progress=False, out=out, overwrite=True)
    assert len(stored) == 4
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("all of it")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="holds no output of ackclock"):
            ackclock.sweep(many(3), progress=False, out=other, overwrite=overwrite)
    assert [entry.name for entry in other.iterdir()] == ["thesis.tex"]


def test_columns_have_one_type_in_all_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stored, "_CHUNK", 1)
    # Whole numbers, then others, and a column that has values in the last runs alone.
    points = [
        {"flows.reno.count": 1 + n % 2, "links.bottleneck.loss.probability": p} for n, p in enumerate([0, 0, 0.5, 1])
    ]
    scenario = small(run={"duration": "60s", "seed": 1})
    scenario["links"]["bottleneck"]["loss"] = {"kind": "iid", "probability": 0}
    expected = ackclock.sweep(scenario, points=points, progress=False)
    stored = ackclock.sweep(scenario, points=points, progress=False, out=tmp_path / "out", threads=1)
    assert isinstance(stored, ackclock.StoredSweep)
    assert stored.frame.equals(expected.frame) and stored.runs.equals(expected.runs)
    import polars

    assert stored.scan().collect().equals(polars.DataFrame(expected.table("flows")))
    assert stored.dataset("runs").count_rows() == len(expected)


def test_columns_are_unified() -> None:
    empty = _stored.unified([pa.schema([("a", pa.null()), ("b", pa.int64())])])
    whole = pa.schema([("a", pa.int64()), ("c", pa.bool_())])
    found = _stored.unified([empty, whole, pa.schema([("b", pa.float64()), ("c", pa.large_string())])])
    assert found.equals(pa.schema([("a", pa.int64()), ("b", pa.float64()), ("c", pa.large_string())]))
    table = _stored.cast(pa.table({"a": pa.nulls(2), "c": [True, False]}), found)
    assert table.to_pydict() == {"a": [None, None], "b": [None, None], "c": ["true", "false"]}


def test_ctrl_c_ends_the_workers_too(cluster: Any, client: Any, tmp_path: Path) -> None:
    body = """
        def soon():
            time.sleep(2.5)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        sent = []
        threading.Thread(target=soon, daemon=True).start()
        try:
            ackclock.sweep(many(64, "100000s"), progress=False, client=address)
        except KeyboardInterrupt:
            print(time.monotonic() - sent[0])
    """
    done = program(body, tmp_path, cluster.scheduler_address)
    said, errors = done.communicate(timeout=60)
    assert said, errors
    assert float(said.splitlines()[-1]) < float(os.environ.get("ACKCLOCK_TEST_INTERRUPT_S", "0.2")) + 2
    until = time.monotonic() + 10
    while any(client.run(_executing).values()) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(client.run(_executing).values())


def _executing(dask_worker: Any) -> int:
    return len(dask_worker.active_threads)


def test_progress_is_shown(client: Any) -> None:
    shown: list[tuple[float, float]] = []
    asked = _pieces.Asked(None, None, False)
    from ackclock import _sweeping

    _sweeping.sweep(ackclock.load(many(50)), asked, client, None, None, (True, False), lambda *at: shown.append(at))
    assert shown == sorted(shown) and shown[-1] == (50, 50)
