"""Figures have what they say, units included."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import small

import ackclock
from ackclock import plot


@pytest.fixture(scope="module")
def result() -> ackclock.Result:
    queue = {"kind": "pie", "limit": "60p"}
    links = {"bottleneck": {"rate": "2mbit", "delay": "10ms", "queue": queue}}
    return ackclock.run(small(links=links, run={"duration": "20s", "seed": 2}), record=["series", "queue"])


@pytest.fixture(scope="module")
def sweep() -> ackclock.Sweep:
    axes = {"links.bottleneck.delay": ["5ms", "20ms", "80ms"], "links.bottleneck.rate": ["1mbit", "4mbit"]}
    loss = {"kind": "iid", "probability": 0.005}
    links = {"bottleneck": {"rate": "2mbit", "delay": "10ms", "loss": loss}}
    return ackclock.sweep(small(links=links, sweep={"axes": axes, "repeat": 4}), progress=False)


@pytest.fixture(autouse=True)
def closed() -> object:
    yield
    plt.close("all")


@pytest.mark.parametrize(
    ("draw", "column", "scale", "label"),
    [
        (plot.throughput, "throughput_bps", 1e-6, "Throughput (Mbit/s)"),
        (plot.rtt, "rtt_ms", 1, "RTT (ms)"),
        (plot.cwnd, "cwnd_bytes", 1e-3, "Congestion window (kB)"),
    ],
)
def test_lines_over_time(draw: object, column: str, scale: float, label: str, result: ackclock.Result) -> None:
    ax = draw(result)  # type: ignore[operator]
    series = result.series
    assert ax.get_ylabel() == label and ax.get_xlabel() == "Time (s)"
    for line, name in zip(ax.lines, ["reno.0", "cubic.0"], strict=True):
        rows = series[series["id"] == name]
        assert line.get_label() == name
        np.testing.assert_allclose(line.get_ydata(), rows[column] * scale)
        np.testing.assert_allclose(line.get_xdata(), rows["to_s"])
    assert ax.lines[0].get_color() != ax.lines[1].get_color()


def test_links_are_those_on_which_packets_waited(result: ackclock.Result) -> None:
    _, ax = plt.subplots()
    assert plot.backlog(result, ax=ax) is ax
    assert [line.get_label() for line in ax.lines] == ["bottleneck.forward"]
    assert ax.get_ylabel() == "Queue length (packets)"
    assert plot.sojourn(result).get_ylabel() == "Queueing delay (ms)"


def test_panels(result: ackclock.Result) -> None:
    axes = plot.time_series(result)
    titles = [ax.get_title() for ax in axes]
    assert (
        titles[0] == "Throughput of flows"
        and "Queue length: bottleneck.forward" in titles
        and "Drop or mark probability: bottleneck.forward" in titles
    )
    assert axes[-1].get_xlabel() == "Time (s)" and axes[0].get_ylabel() == "Mbit/s"
    queue = plot.queue(result)
    assert len(queue) == 3 and queue[0].get_ylabel() == "Delay (ms)"


def test_distributions(sweep: ackclock.Sweep) -> None:
    ax = plot.cdf(sweep, "goodput_bps", color="cc")
    assert [line.get_label() for line in ax.lines] == ["newreno", "cubic"]
    assert all(np.asarray(line.get_ydata())[-1] == 1 for line in ax.lines)
    boxes = plot.boxes(sweep, "goodput_bps", x="links.bottleneck.delay", color="cc")
    assert [tick.get_text() for tick in boxes.get_xticklabels()] == ["5 ms", "20 ms", "80 ms"]
    assert len(boxes.patches) == 6
    # Whiskers reach from the smallest to the largest, beyond which nothing is.
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in boxes.lines])
    goodput = sweep.frame["goodput_bps"] * 1e-6
    np.testing.assert_allclose([np.nanmin(drawn), np.nanmax(drawn)], [goodput.min(), goodput.max()])
    ax = plot.scatter(sweep)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("RTT, median (ms)", "Goodput (Mbit/s)")
    assert sum(len(np.asarray(points.get_offsets())) for points in ax.collections) == len(sweep.frame)


def test_sweeps(sweep: ackclock.Sweep) -> None:
    frame = sweep.frame
    ax = plot.lines(sweep, "links.bottleneck.delay", "goodput_bps", color="links.bottleneck.rate")
    assert ax.get_xlabel() == "links.bottleneck.delay (ms)"
    assert [line.get_label() for line in ax.containers] == ["1 Mbit/s", "4 Mbit/s"]
    means = frame[frame["links.bottleneck.rate"] == 1e6].groupby("links.bottleneck.delay")["goodput_bps"].mean()
    drawn = dict(zip(np.asarray(ax.lines[0].get_xdata()), np.asarray(ax.lines[0].get_ydata()), strict=True))
    assert drawn == pytest.approx({1e3 * delay: mean / 1e6 for delay, mean in means.items()})
    heat = plot.heatmap(sweep, "links.bottleneck.delay", "links.bottleneck.rate")
    values = np.asarray(heat.images[0].get_array())
    assert values.shape == (2, 3) and values[0, 0] == pytest.approx(means[0.005] / 1e6)


def test_shared_axes_fit_every_panel_in_one_unit(sweep: ackclock.Sweep) -> None:
    slow, fast = (sweep.frame[sweep.frame["links.bottleneck.rate"] == rate] for rate in (1_000_000, 4_000_000))
    slow = slow[slow["links.bottleneck.delay"] < 0.08]
    x = "links.bottleneck.delay"
    for draw in (plot.boxes, lambda rows, ax: plot.lines(rows, x, ax=ax)):
        # Both orders: neither panel may decide alone.
        for order in ((slow, fast), (fast, slow)):
            _, axes = plt.subplots(1, 2, sharex=True, sharey=True)
            for rows, ax in zip(order, axes, strict=True):
                draw(rows, ax=ax)
            low, high = axes[0].get_ylim()
            scale = {"Goodput (Mbit/s)": 1e-6, "Goodput (kbit/s)": 1e-3}[axes[0].get_ylabel()]
            assert axes[1].get_ylabel() == axes[0].get_ylabel()
            assert low == 0 and high > sweep.frame["goodput_bps"].groupby(sweep.frame[x]).mean().max() * scale
            drawn = [y for ax in axes for line in ax.lines for y in np.asarray(line.get_ydata(), dtype=float)]
            assert max(drawn) <= high and max(drawn) > sweep.frame["goodput_bps"].mean() * scale
    _, axes = plt.subplots(1, 2, sharex=True, sharey=True)
    for rows, ax in zip((slow, fast), axes, strict=True):
        plot.boxes(rows, x=x, ax=ax)
    # The second panel has a place that the first one has not.
    assert [tick.get_text() for tick in axes[0].get_xticklabels()] == ["5 ms", "20 ms", "80 ms"]
    assert axes[0].get_xlim() == (-0.6, 2.6)


def test_a_longer_run_beside_a_shorter_one_is_not_cut(result: ackclock.Result) -> None:
    series = result.series
    short = series[series["to_s"] <= 5]
    for order in ((series, short), (short, series)):
        _, axes = plt.subplots(1, 2, sharex=True, sharey=True)
        for rows, ax in zip(order, axes, strict=True):
            plot.cwnd(rows, ax=ax)
        assert axes[0].get_xlim() == (0, series["to_s"].max())
        assert axes[0].get_ylim()[0] == 0 and axes[0].get_ylim()[1] >= series["cwnd_bytes"].max() / 1e3


def test_values_of_axes_have_their_names() -> None:
    queues = [{"label": "drop-tail", "kind": "pfifo", "limit": "30p"}, {"kind": "pie"}, {"kind": "pie", "ecn": True}]
    swept = ackclock.sweep(small(sweep={"axes": {"links.bottleneck.queue": queues}}), progress=False)
    x, labels = "links.bottleneck.queue", ["drop-tail", "pie", "pie ecn true"]
    assert [tick.get_text() for tick in plot.boxes(swept, x=x).get_xticklabels()] == labels
    assert [tick.get_text() for tick in plot.lines(swept, x).get_xticklabels()] == labels
    assert sorted(tick.get_text() for tick in plot.heatmap(swept, "cc", x).get_yticklabels()) == labels
    legend = plot.cdf(swept, color=x).get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == labels


def test_what_is_not_there_is_said(result: ackclock.Result, sweep: ackclock.Sweep) -> None:
    with pytest.raises(ValueError, match="there is no column 'goodput'; similar ones: goodput_bps"):
        plot.cdf(sweep, "goodput")
    with pytest.raises(ValueError, match="no series of a run"):
        plot.rtt(sweep.frame)
    with pytest.raises(ValueError, match="no rows of kind 'group'"):
        plot.series(result, "throughput_bps", kind="group")
    with pytest.raises(ValueError, match="the record has no link 'x'"):
        plot.queue(result, link="x")
