"""What is wrong is an exception with its place; nothing panics."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import SMOKE, small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ackclock
from ackclock import _toml

WRONG = 'schema = 1\n\n[run]\nduration = 5\n\n[links.a]\nrate = "1mbit"\n\n[[flows]]\nid = "f"\npath = ["b"]\n'


def test_a_scenario_error_has_text_and_places(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG)
    with pytest.raises(ackclock.ScenarioError) as found:
        ackclock.run(file)
    error = found.value
    assert isinstance(error, ValueError)
    assert (error.path, error.line, error.column) == (str(file), 4, 12)
    assert [(problem.line, problem.column) for problem in error.problems] == [(4, 12), (11, 9)]
    assert f"{file}:4:12" in str(error) and "duration = 5" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.problems == error.problems


def test_the_text_is_that_of_the_command_line(tmp_path: Path) -> None:
    import os
    import subprocess

    program = os.environ.get("ACKCLOCK")
    if program is None:
        pytest.skip("ACKCLOCK does not name the program of the command line")
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG)
    done = subprocess.run([program, str(file)], capture_output=True, text=True, check=False)
    with pytest.raises(ackclock.ScenarioError) as found:
        ackclock.run(file)
    assert done.returncode == 2 and done.stderr == str(found.value) + "\n"


def test_overrides_and_dicts_have_places_too() -> None:
    with pytest.raises(ackclock.ScenarioError) as found:
        ackclock.run(small(), set={"links.bottleneck.dealy": "1ms"})
    assert found.value.path == "set" and "did you mean `delay`" in str(found.value)
    with pytest.raises(ackclock.ScenarioError) as found:
        ackclock.run(small(links={"bottleneck": {"rate": "2 parsecs"}}))
    assert found.value.path == "<dict>" and 'rate = "2 parsecs"' in str(found.value)
    with pytest.raises(ackclock.ScenarioError) as found:
        ackclock.run(small(), seed=-1)
    assert found.value.path == "seed"


def test_other_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        ackclock.run(tmp_path / "none.toml")
    assert missing.value.filename == str(tmp_path / "none.toml")
    with pytest.raises(IsADirectoryError):
        ackclock.run(tmp_path)
    with pytest.raises(ValueError, match="has 4 runs: use ackclock.sweep"):
        ackclock.run(small(sweep={"repeat": 4}))
    with pytest.raises(ackclock.RunError, match="only: expected numbers of runs"):
        ackclock.sweep(small(sweep={"repeat": 4}), only="x", progress=False)
    with pytest.raises(ackclock.RunError, match="require a sweep"):
        ackclock.sweep(small(), shard="0/2", progress=False)
    with pytest.raises(ValueError, match="threads"):
        ackclock.sweep(small(), threads=0, progress=False)
    with pytest.raises(OverflowError):
        ackclock.sweep(small(), threads=-1, progress=False)
    with pytest.raises(ValueError, match="there is no table `x`"):
        ackclock.run(small()).table("x")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"set": "links.a.delay=1ms"}, "set: found a string"),
        ({"set": {"links.bottleneck.delay": None}}, "None"),
        ({"set": {1: 2}}, "a key is 1"),
        ({"set": [3]}, "found 3"),
        ({"seed": "x"}, "seed: found 'x'"),
        ({"seed": 1.5}, "seed: found 1.5"),
        ({"record": "series"}, r"expected a list such as \['series'\]"),
    ],
)
def test_arguments_of_the_wrong_type(arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(TypeError, match=what):
        ackclock.run(small(), **arguments)


def test_names_of_records_are_checked() -> None:
    with pytest.raises(ValueError, match="'seris' is not one of series, queue"):
        ackclock.run(small(), record=["seris"])
    with pytest.raises(ValueError, match="found `=`"):
        ackclock.run(small(), set={"run.seed=5": 1})


def test_live_runs_are_refused_with_what_to_do() -> None:
    file = SMOKE.parent / "live" / "ping-delay.toml"
    with pytest.raises(ackclock.RunError, match='`run.clock` to "virtual"'):
        ackclock.run(file)


def test_a_failed_run_of_a_sweep_ends_nothing() -> None:
    points = [{"links.bottleneck.delay": f"{n}us"} for n in range(1, 10_500)]
    scenario = small(run={"duration": "200ms"})
    # Of so many points the last but one is not among those that are read in advance.
    points[-2]["links.bottleneck.delay"] = "not a time"
    number = len(points) - 2
    sweep = ackclock.sweep(scenario, points=points, only=f"{number - 1}-{number + 1}", progress=False)
    assert sweep.failed == 1 and sweep[1].failed and "its point is wrong" in sweep[1].summary["error"]
    assert sweep.table("runs").column("failed") == [None, True, None]
    assert "failed" in sweep[1]._repr_html_() and "1 failed" in repr(sweep)
    # One that is read in advance is said at once, and one that has no others is an error.
    points[0]["links.bottleneck.delay"] = "nor this"
    notes = ackclock.load(scenario, points=points).notes
    assert any('the point links.bottleneck.delay = "nor this" is wrong: ' in note for note in notes), notes
    with pytest.raises(ackclock.ScenarioError) as found:
        ackclock.load(scenario, points=points[:1])
    assert found.value.path == "points"


def test_what_is_read_is_checked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ackclock.read(tmp_path / "none")
    with pytest.raises(ValueError, match=r"not an ackclock output directory \(no manifest\.json\)"):
        ackclock.read(tmp_path)
    manifest = tmp_path / "manifest.json"
    for text, what in [
        ("{", "not ackclock's"),
        ("[]", "not ackclock's"),
        ('{"ackclock": "0.0.9", "layout": 1, "files": {}}', r"written by the Python package of ackclock 0\.0\.9"),
        ('{"ackclock": "1", "files": {"../x": {}}}', "outside the directory"),
        ('{"ackclock": "1", "files": {}}', "lists no summary"),
    ]:
        manifest.write_text(text)
        with pytest.raises(ValueError, match=what):
            ackclock.read(tmp_path)
    manifest.write_text('{"ackclock": "1", "files": {"summary.jsonl": {}}, "runs": 2}')
    (tmp_path / "summary.jsonl").write_text('{"schema": 1}\n[]\n')
    with pytest.raises(ValueError, match="line 2: not a summary"):
        ackclock.read(tmp_path).flows  # noqa: B018
    (tmp_path / "summary.jsonl").write_text('{"a":' * 500)
    with pytest.raises(ValueError, match="line 1: "):
        ackclock.read(tmp_path).flows  # noqa: B018


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    section=st.sampled_from(["schema", "run", "links", "flows", "sweep", "expect", "record", "workloads", "x"]),
    value=VALUES,
)
def test_no_dict_panics(section: str, value: Any) -> None:
    try:
        ackclock.load(small(**{section: value}))
    except (ackclock.ScenarioError, TypeError, ValueError):
        pass


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=6), LEAVES.filter(lambda leaf: leaf is not None), max_size=4))
def test_toml_says_what_python_says(found: dict[str, Any]) -> None:
    tomllib = pytest.importorskip("tomllib")
    try:
        text = _toml.document(found)
    except ValueError as error:
        assert "surrogate" in str(error)
        return
    read = tomllib.loads(text)
    assert list(read) == list(found)
    for key, value in found.items():
        same = isinstance(value, float) and math.isnan(value) and math.isnan(read[key])
        assert same or (read[key] == value and type(read[key]) is type(value))


def test_numbers_of_numpy_and_paths_are_values() -> None:
    np = pytest.importorskip("numpy")
    values = {"run.seed": np.int64(3), "run.duration": "1s"}
    assert ackclock.run(small(), set=values).summary["seed"] == 3
    assert _toml.value(np.float64(0.5), "x") == "0.5" and _toml.value(Path("/a b"), "x") == '"/a b"'
    assert _toml.value(np.array([1, 2]), "x") == "[1, 2]" and _toml.value(np.bool_(True), "x") == "true"
    assert json.loads(_toml.value('tab\tquote"', "x")) == 'tab\tquote"'
