"""Python and the command line give the same bytes."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, SMOKE, small

import ackclock
from ackclock import _toml

SINGLE = ["ecn-codel", "fixed-size", "loss", "reverse", "short-flows", "smoltcp", "two-flows-pie"]


@pytest.mark.parametrize("name", SINGLE)
def test_a_run_is_the_line_of_the_command_line(name: str, command_line: Callable[..., str]) -> None:
    file = SMOKE / f"{name}.toml"
    assert ackclock.run(file).json + "\n" == command_line(file, "--json")


def test_overrides_are_those_of_the_command_line(command_line: Callable[..., str]) -> None:
    file = SMOKE / "two-flows-pie.toml"
    values = {"links.bottleneck.delay": "33ms", "flows.*.cc": "cubic", "run.duration": "4s"}
    texts = [f"{key}={value}" for key, value in values.items()]
    arguments = [part for text in texts for part in ("--set", text)]
    expected = command_line(file, *arguments, "--seed", "5", "--json")
    assert ackclock.run(file, set=values, seed=5).json + "\n" == expected
    assert ackclock.run(str(file), set=texts, seed=5).json + "\n" == expected


@pytest.mark.filterwarnings("ignore::ackclock.ScenarioWarning")
def test_a_live_scenario_on_the_virtual_clock(command_line: Callable[..., str]) -> None:
    file = SMOKE.parent / "live" / "kernel-to-endpoint.toml"
    assert ackclock.run(file, set={"run.clock": "virtual"}).json + "\n" == command_line(
        file, "--clock", "virtual", "--json"
    )


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_sweep_has_the_lines_of_the_command_line(threads: int, command_line: Callable[..., str]) -> None:
    file = SMOKE / "sweep.toml"
    sweep = ackclock.sweep(file, threads=threads, progress=False)
    assert sweep.json == command_line(file, "--json")


@pytest.mark.filterwarnings("ignore:a part of the runs")
@pytest.mark.parametrize("part", [{"only": "0-1"}, {"only": "1:0"}, {"shard": "1/3"}])
def test_parts_of_a_sweep_too(part: dict[str, str], command_line: Callable[..., str]) -> None:
    file = SMOKE / "sweep.toml"
    [(flag, value)] = part.items()
    sweep = ackclock.sweep(file, progress=False, only=part.get("only"), shard=part.get("shard"))
    assert sweep.json == command_line(file, f"--{flag}", value, "--json")
    assert 0 < len(sweep) < ackclock.load(file).runs


def test_an_adaptive_sweep_ends_where_that_of_the_command_line_does(
    tmp_path: Path, command_line: Callable[..., str]
) -> None:
    scenario = small()
    scenario["links"]["bottleneck"]["loss"] = {"kind": "iid", "probability": 0.01}
    until = {"metric": "flows.reno.0.goodput_bps", "ci95": 0.15}
    scenario["sweep"] = {
        "axes": {"links.bottleneck.delay": ["5ms", "20ms"]},
        "repeat": {"min": 5, "max": 30, "until": until},
    }
    assert ackclock.load(scenario).is_adaptive
    file = tmp_path / "adaptive.toml"
    file.write_text(_toml.document(scenario))
    expected = command_line(file, "--json")
    assert expected.count("\n") < 60, "no point was settled early"
    for threads in (1, 4):
        assert ackclock.sweep(file, threads=threads, progress=False).json == expected


def test_a_dict_is_its_file(tmp_path: Path) -> None:
    scenario = small()
    file = tmp_path / "small.toml"
    file.write_text(_toml.document(scenario))
    assert ackclock.run(scenario).json == ackclock.run(file).json
    assert json.loads(ackclock.run(scenario).json)["title"] == "Two flows"


@pytest.mark.parametrize("record", [["series", "queue", "tcp"], {"series": "250ms"}])
def test_what_was_written_is_what_was_run(record: object, tmp_path: Path, command_line: Callable[..., str]) -> None:
    file = SMOKE / "two-flows-pie.toml"
    keys = ["series=100ms", "queue=true", "tcp=true"] if isinstance(record, list) else ["series=250ms"]
    arguments = [part for key in keys for part in ("--set", f"record.{key}")]
    command_line(file, *arguments, "--out", tmp_path / "out", "--quiet")
    written = ackclock.read(tmp_path / "out")
    assert isinstance(written, ackclock.Result)
    result = ackclock.run(file, record=record)  # type: ignore[arg-type]
    assert written.json == result.json
    assert dict(written.records) == dict(result.records) and len(result.records) == len(keys)
    assert written.manifest is not None and written.manifest["title"] == result.summary["title"]


def test_a_sweep_that_was_written(tmp_path: Path, command_line: Callable[..., str]) -> None:
    file = SMOKE / "sweep.toml"
    command_line(file, "--set", "record.series=1s", "--out", tmp_path / "out", "--quiet")
    written = ackclock.read(tmp_path / "out")
    sweep = ackclock.sweep(file, record={"series": "1s"}, progress=False)
    assert isinstance(written, ackclock.Sweep) and written.json == sweep.json
    for ours, theirs in zip(sweep, written, strict=True):
        assert dict(ours.records) == dict(theirs.records) and list(ours.records) == ["series.csv"]
    assert written.frame.equals(sweep.frame)


def test_records_that_were_not_wanted_are_not_missing(tmp_path: Path, command_line: Callable[..., str]) -> None:
    """The scenario asks for them, and the manifest says that there are none."""
    asked = {"record.series": "1s"}
    ackclock.sweep(SMOKE / "sweep.toml", set=asked, record=False, progress=False, out=tmp_path / "out")
    assert not any(name.endswith("series.csv") for name in files_of(tmp_path / "out"))
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["records"] is False
    assert command_line("verify", tmp_path / "out").count("the same") == 1


@pytest.mark.filterwarnings("ignore:a part of the runs")
def test_a_directory_is_that_of_the_command_line(tmp_path: Path, command_line: Callable[..., str]) -> None:
    """Whoever has written it: the same files, which either reads, resumes and merges."""
    file = SMOKE / "sweep.toml"
    record = ("--set", "record.series=1s")
    command_line(file, *record, "--out", tmp_path / "theirs", "--quiet")
    for scenario, name in ((file, "ours"), (SMOKE / "two-flows-pie.toml", "single")):
        ackclock.sweep(scenario, record={"series": "1s"}, progress=False, out=tmp_path / name)
    ours, theirs = (files_of(tmp_path / name) for name in ("ours", "theirs"))
    assert list(ours) == list(theirs) and ours == theirs and "runs/0000/series.csv" in ours
    command_line(SMOKE / "two-flows-pie.toml", *record, "--out", tmp_path / "single-theirs", "--quiet")
    assert files_of(tmp_path / "single") == files_of(tmp_path / "single-theirs")
    verified = command_line("verify", tmp_path / "ours", tmp_path / "single")
    assert verified.count("the same") == 2
    assert "flows.flow.0.goodput_bps" in command_line("compare", "--json", tmp_path / "ours", tmp_path / "theirs")
    command_line("report", tmp_path / "ours", "-o", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 100_000
    # Either goes on with what the other has begun: all is there.
    before = files_of(tmp_path / "theirs")
    assert len(ackclock.sweep(file, record={"series": "1s"}, progress=False, out=tmp_path / "theirs")) == 8
    command_line(file, *record, "--out", tmp_path / "ours", "--resume", "--quiet")
    assert files_of(tmp_path / "theirs") == before == files_of(tmp_path / "ours")
    # Shards of both are merged.
    arguments = {"record": {"series": "1s"}, "progress": False}
    ackclock.sweep(file, shard="0/2", out=tmp_path / "part-0", **arguments)  # type: ignore[arg-type]
    command_line(file, *record, "--shard", "1/2", "--out", tmp_path / "part-1", "--quiet")
    command_line("merge", tmp_path / "part-0", tmp_path / "part-1", "--out", tmp_path / "merged", "--quiet")
    assert files_of(tmp_path / "merged") == before
    # Tables are derived, and anew where the results are others.
    stored = ackclock.read(tmp_path / "theirs")
    assert isinstance(stored, ackclock.StoredSweep)
    rows = stored.dataset("flows").count_rows()
    assert rows == len(stored.frame) == 16
    command_line(file, "--set", "sweep.repeat=1", "--out", tmp_path / "theirs", "--quiet")
    fewer = ackclock.read(tmp_path / "theirs")
    assert isinstance(fewer, ackclock.StoredSweep)
    assert fewer.dataset("flows").count_rows() == len(fewer.frame) < rows
    assert fewer[-1].json == fewer[len(fewer) - 1].json
    with pytest.raises(IndexError):
        fewer[len(fewer)]


def files_of(folder: Path) -> dict[str, bytes]:
    """What is in a directory, but for derived tables."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith("tables/")}


def test_the_gallery_is_there() -> None:
    assert sorted(SINGLE + ["sweep"]) == sorted(file.stem for file in SMOKE.glob("*.toml")), ROOT


def test_results_and_scenarios_can_be_pickled() -> None:
    result = ackclock.run(small(), record=["series", "tcp"])
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert again.json == result.json and dict(again.records) == dict(result.records)
        assert again.series.equals(result.series)
    loaded = ackclock.load(SMOKE / "sweep.toml", set={"run.duration": "2s"})
    again = pickle.loads(pickle.dumps(loaded))
    sweep = ackclock.sweep(again, progress=False)
    assert sweep.json == ackclock.sweep(loaded, progress=False).json
    assert pickle.loads(pickle.dumps(sweep)).json == sweep.json


def test_the_package_brings_its_scenarios() -> None:
    scenarios = ackclock.scenarios()
    files = {path.relative_to(SMOKE.parent).with_suffix("").as_posix() for path in SMOKE.parent.rglob("*.toml")}
    assert set(scenarios) == files and "smoke/sweep" in files
    # Files that they name come with them.
    assert ackclock.load(scenarios["cellular/lte"]).runs > 0
    assert ackclock.load(scenarios["learned/one-flow"]).runs > 0
