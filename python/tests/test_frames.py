"""Tables have what the JSON has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import SMOKE, small

import ackclock


def flat(found: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The numbers and texts of an object, by names with dots."""
    values: dict[str, Any] = {}
    for key, value in found.items():
        if isinstance(value, dict):
            values |= flat(value, f"{prefix}{key}.")
        else:
            values[prefix + key] = json.dumps(value, separators=(",", ":")) if isinstance(value, list) else value
    return values


def rows(table: ackclock.Table) -> list[dict[str, Any]]:
    """The rows of a table without missing values."""
    columns = table.to_dict()
    return [
        {name: values[row] for name, values in columns.items() if values[row] is not None} for row in range(len(table))
    ]


@pytest.fixture(scope="module")
def result() -> ackclock.Result:
    return ackclock.run(small(), record={"series": "500ms", "queue": True, "tcp": True})


@pytest.fixture(scope="module")
def sweep() -> ackclock.Sweep:
    axes = {"links.bottleneck.rate": ["1mbit", "2mbit"], "flows.reno.cc": ["newreno", "bbr"]}
    expect = [{"metric": "flows.reno.0.goodput_bps", "at_least": 10_000_000}]
    return ackclock.sweep(small(sweep={"axes": axes, "repeat": 2}, expect=expect), progress=False)


@pytest.mark.parametrize("part", ["flows", "links"])
def test_a_row_has_every_value_of_its_object(part: str, result: ackclock.Result) -> None:
    expected = [{k: v for k, v in flat(one).items() if v is not None} for one in result.summary[part]]
    assert rows(result.table(part)) == expected and len(expected) == 2


def test_rows_of_a_sweep_have_run_and_parameters_in_front(sweep: ackclock.Sweep) -> None:
    lines = [json.loads(line) for line in sweep.json.splitlines()]
    expected = []
    for line in lines:
        rate = {"1mbit": 1_000_000, "2mbit": 2_000_000}[line["params"]["links.bottleneck.rate"]]
        quantity = {"links.bottleneck.rate": rate, "links.bottleneck.rate unit": "bit/s"}
        keys = {"index": line["index"], "run": line["run"], **line["params"], **quantity}
        for flow in line["flows"]:
            expected.append(keys | {k: v for k, v in flat(flow).items() if v is not None})
    assert rows(sweep.table("flows")) == expected and len(expected) == 8 * 2
    front = ["index", "run", "links.bottleneck.rate", "links.bottleneck.rate unit", "flows.reno.cc"]
    assert list(sweep.frame.columns[:5]) == front
    assert list(sweep.runs["index"]) == list(range(8)) and sweep.failed == 0
    assert sweep.runs["fairness_jain"].tolist() == [line["fairness_jain"] for line in lines]


def test_parameters_are_numbers_or_names(tmp_path: Path) -> None:
    tail = {"label": "drop-tail", "kind": "pfifo", "limit": "20p"}
    axes = {
        "links.bottleneck.rate": ["500kbit", "1.5mbit"],
        "links.bottleneck.delay": [{"label": "near", "value": "5ms"}, "40ms"],
        "links.bottleneck.queue": [tail, {"kind": "pie", "ecn": True}, {"kind": "pie"}],
    }
    scenario = small(run={"duration": "200ms"}, sweep={"axes": axes})
    kept = ackclock.sweep(scenario, progress=False)
    stored = ackclock.sweep(scenario, progress=False, out=tmp_path / "out")
    assert stored.frame.equals(kept.frame) and stored.runs.equals(kept.runs)
    types = {field.name: str(field.type) for field in pa.schema(kept.table("flows"))}
    assert types["links.bottleneck.rate"] == "int64" and types["links.bottleneck.delay"] == "double"
    found = kept.runs
    assert sorted(set(found["links.bottleneck.rate"])) == [500_000, 1_500_000]
    assert set(found["links.bottleneck.rate unit"]) == {"bit/s"}
    assert set(zip(found["links.bottleneck.delay"], found["links.bottleneck.delay label"], strict=True)) == {
        (0.005, "near"),
        (0.04, "40ms"),
    }
    assert "links.bottleneck.rate label" not in found and "links.bottleneck.queue unit" not in found
    assert list(dict.fromkeys(found["links.bottleneck.queue"])) == ["drop-tail", "pie ecn true", "pie"]
    limits = {"links.bottleneck.queue.limit": ["50p", "60kB"]}
    mixed = ackclock.sweep(small(run={"duration": "200ms"}, sweep={"axes": limits}), progress=False).runs
    assert list(mixed["links.bottleneck.queue.limit"]) == ["50p", "60kB"], "of two kinds"
    assert "drop-tail" in kept._repr_html_() and "pfifo" not in kept._repr_html_()


def test_expectations_that_were_missed_are_rows(sweep: ackclock.Sweep) -> None:
    found = sweep.expectations
    assert len(found) == 4, "one for each point"
    assert json.loads(sweep.json.splitlines()[-1])["expectations"][0]["metric"] == found["metric"][0]
    assert not found["met"].astype(bool).any()


def test_pandas_polars_and_pyarrow_agree(result: ackclock.Result, sweep: ackclock.Sweep) -> None:
    for one in (result, sweep):
        for part in ("flows", "links", "runs"):
            table = one.table(part)
            arrow = pa.table(table)
            arrow.validate(full=True)
            assert pl.DataFrame(table).to_dict(as_series=False) == arrow.to_pydict() == table.to_dict()
    assert pl.DataFrame(sweep).shape == sweep.frame.shape
    assert isinstance(result.flows, pd.DataFrame)
    assert list(result.links["id"]) == [link["id"] for link in result.summary["links"]]
    assert str(result.flows["goodput_bps"].dtype) == "float64"
    assert str(result.flows["sent_packets"].dtype) == "int64"
    # Nothing was completed: missing, and a number all the same.
    assert result.flows["completed_s"].isna().all() and str(result.flows["completed_s"].dtype) == "float64"


def test_a_stream_may_be_taken_twice_and_dropped(result: ackclock.Result) -> None:
    table = result.table("flows")
    first, second = table.__arrow_c_stream__(), table.__arrow_c_stream__()
    del first, second
    assert pa.table(table) == pa.table(table)
    schema = pa.schema(table)
    assert schema.names == table.column_names


def test_series_are_those_of_the_file(result: ackclock.Result) -> None:
    text = result.records["series.csv"].decode()
    header, *lines = text.splitlines()
    series = result.series
    assert list(series.columns) == header.split(",") and len(series) == len(lines) == 6 * (2 + 2)
    for line, row in zip(lines, rows(result.table("series.csv")), strict=True):
        for name, cell in zip(header.split(","), line.split(","), strict=True):
            if cell == "":
                assert name not in row
            elif name in ("kind", "id", "ca_state"):
                assert row[name] == cell
            else:
                assert float(row[name]) == float(cell)
    assert set(series["kind"]) == {"flow", "link"}
    # Rates times the lengths of the intervals are the bytes of the summary.
    flows = series[series["kind"] == "flow"]
    delivered = (flows["goodput_bps"] * (flows["to_s"] - flows["from_s"]) / 8).groupby(flows["id"]).sum()
    for flow in result.summary["flows"]:
        assert delivered[flow["id"]] == pytest.approx(flow["delivered_bytes"])


def test_other_records(result: ackclock.Result) -> None:
    assert sorted(result.records) == ["queue.csv", "series.csv", "tcp.csv"]
    queue = result.table("queue.csv").to_dict()
    dequeued = sum(action == "dequeue" for action in queue["action"])
    link = next(link for link in result.summary["links"] if link["id"] == "bottleneck.forward")
    assert dequeued > 100 and set(queue["link"]) <= {"bottleneck.forward", "bottleneck.reverse"}
    drops = sum(a == "drop" and at == link["id"] for a, at in zip(queue["action"], queue["link"], strict=True))
    assert drops == sum(link["dropped"].values())
    with pytest.raises(ValueError, match=r"the run has no ertt.csv, .* record=\['ertt'\]"):
        result.table("ertt.csv")
    with pytest.raises(ValueError, match="series"):
        _ = ackclock.run(small()).series


def test_records_can_be_left_out() -> None:
    scenario = small(record={"queue": True, "series": "1s"})
    assert sorted(ackclock.run(scenario).records) == ["queue.csv", "series.csv"]
    assert not ackclock.run(scenario, record=False).records
    assert ackclock.run(scenario, record=False).json == ackclock.run(small()).json


def test_groups_workloads_and_datagrams_where_there_are_any(result: ackclock.Result) -> None:
    assert result.groups.empty and result.workloads.empty and result.datagrams.empty
    scenario = small()
    voice = {"id": "voice", "path": ["bottleneck"], "transport": "udp", "application": {"kind": "voip"}}
    scenario["flows"].append(voice)
    datagrams = ackclock.run(scenario).datagrams
    assert list(datagrams["id"]) == ["voice.0"] and len(datagrams.columns) > 3


def test_csv_keeps_types_and_rejects_what_is_none() -> None:
    text = b"id,a,b,c,d\n1.0,1,1.5,x,\n2.0,,2,1,\n"
    table = ackclock.Table.from_csv(text)
    assert table.to_dict() == {"id": ["1.0", "2.0"], "a": [1, None], "b": [1.5, 2.0], "c": ["x", "1"], "d": [None] * 2}
    for wrong in (b"a,b\n1\n", b"a\n\xff\n"):
        with pytest.raises(ValueError):
            ackclock.Table.from_csv(wrong)
    assert ackclock.Table.from_csv(b"").num_rows == 0


def test_html_is_escaped(sweep: ackclock.Sweep) -> None:
    shown = ackclock.run(small(title="<b>&")).__getattribute__("_repr_html_")()
    assert "&lt;b&gt;&amp;" in shown and "reno.0" in shown and "<table>" in shown
    assert "and 3 more runs" in sweep._repr_html_() and "links.bottleneck.rate" in sweep._repr_html_()
    assert "8 runs" in repr(sweep) and "2 flows" in repr(sweep[0]) and len(list(sweep)) == 8
    assert sweep[-1].json == sweep[7].json
    with pytest.raises(IndexError):
        sweep[8]


def test_smoke_tables_of_every_scenario() -> None:
    for file in sorted(SMOKE.glob("*.toml")):
        sweep = ackclock.sweep(file, progress=False)
        for part in ("runs", "flows", "links", "groups", "kinds", "windows", "workloads", "expectations"):
            pa.table(sweep.table(part)).validate(full=True)
