// What is in each figure: functions from the data of a report and a choice of metrics and axes to an
// option of ECharts and a height. They touch no document, so that they also run without a browser.
"use strict";

// Titles, units and places of metrics, from their rows.
const METRICS = {{metrics}};

const Figures = (() => {
  // Okabe and Ito's colours, which people with any colour vision tell apart; the first is replaced
  // where the background is dark.
  const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C6D1F", "#7F7F7F"];
  const LIGHT = { text: "#1b1f24", muted: "#59636e", line: "#d1d9e0", palette: PALETTE };
  const DARK = { text: "#e6edf3", muted: "#9198a1", line: "#3d444d", palette: ["#4FA8DC", ...PALETTE.slice(1)] };
  const SYMBOLS = ["circle", "rect", "triangle", "diamond", "pin", "arrow"];
  const VIRIDIS = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];

  const SUFFIX = /_(bps|ms|s|bytes)$/;
  const SUBJECTS = {
    flows: "flows", subflows: "subflows", links: "link directions", groups: "groups of flows", workloads: "workloads",
    kinds: "kinds of traffic", senders: "senders", hosts: "hosts", live: "live runs", run: "runs",
  };

  function words(part) {
    const plain = part.replace(SUFFIX, "");
    return part === "*" ? "within runs" : METRICS.titles[part] || plain.replaceAll("_", " ");
  }

  function capital(text) {
    return text.charAt(0).toUpperCase() + text.slice(1);
  }

  function label(metric) {
    return capital(metric.split(".").map(words).join(", "));
  }

  // The unit of a metric, and by what its values are multiplied for it.
  function unit(metric, values) {
    const part = metric.split(".").find((part) => SUFFIX.test(part));
    const scales = part && METRICS.scales[part.match(SUFFIX)[1]];
    if (scales) {
      const most = values.reduce((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);
      return scales.find(([from]) => most >= from).slice(1);
    }
    if (/utilization|bucket_empty/.test(metric)) return ["%", 100];
    if (/packets|dropped|marked|enqueued|dequeued|offered/.test(metric)) return ["packets", 1];
    if (metric === "reordering") return ["segments", 1];
    return ["", 1];
  }

  function title(metric, unit) {
    return unit ? `${label(metric)} (${unit})` : label(metric);
  }

  function show(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
    return String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
  }

  function escape(text) {
    return String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  }

  // The lines of a text of 12 pixels in so much room. Widths are estimates: there is no browser where
  // files are drawn.
  const LETTER = 6.6;
  const LINE = 15;
  function wrapped(text, room) {
    const lines = [""];
    for (const word of String(text).split(" ")) {
      const line = lines[lines.length - 1];
      if (line && (line.length + 1 + word.length) * LETTER > room) lines.push(word);
      else lines[lines.length - 1] = line ? `${line} ${word}` : word;
    }
    return lines;
  }

  // The last part of a path that tells it from the others.
  function short(name, names) {
    const parts = name.split(".");
    for (let count = 1; count < parts.length; count++) {
      const end = parts.slice(-count).join(".");
      if (end !== "kind" && !names.some((other) => other !== name && other.endsWith("." + end))) return end;
    }
    return name;
  }

  // By what the rows of a subject may be told apart: axes, and names that differ.
  function dimensions(data, subject) {
    const rows = data.subjects[subject].runs;
    const varied = Object.entries(data.subjects[subject].names).filter(([, names]) => names.known.length > 1);
    // An axis may tell the same as a name, as where a sweep sets the controller of all flows.
    const told = (axis) => varied.filter(([, names]) => {
      const of_axis = rows.map((run) => axis.rows[run] ?? -1);
      const pairs = new Set(names.rows.map((name, row) => `${name} ${of_axis[row]}`)).size;
      return pairs === names.known.length && pairs === new Set(of_axis).size;
    }).map(([name]) => name);
    const tells = data.axes.map(told);
    const own = varied.filter(([name]) => !tells.flat().includes(name));
    const names = data.axes.map((axis) => axis.name).concat(own.map(([name]) => `.${name}`));
    const axes = data.axes.map((axis, number) => ({
      name: axis.name, label: short(axis.name, names), values: axis.values, is_axis: true, tells: tells[number],
      of: (row) => axis.rows[rows[row]] ?? -1,
    })).filter((axis) => axis.values.length > 1);
    return axes.concat(own.map(([name, names]) => ({
      name, label: name === "id" ? SUBJECTS[subject].replace(/s$/, "") : name, values: names.known,
      of: (row) => names.rows[row],
    })));
  }

  const QUANTILES = ["p5", "p25", "p50", "p75", "p95"];

  // The metrics of a subject; where there are quantiles, their distribution as well.
  function metrics(data, subject) {
    const names = Object.keys(data.subjects[subject].metrics);
    const whole = names.filter((name) => name.endsWith(".p50")).map((name) => name.slice(0, -3) + "*");
    const complete = whole.filter((name) => QUANTILES.every((q) => names.includes(name.slice(0, -1) + q)));
    const order = (name) => {
      const place = MAIN.indexOf(name);
      return place < 0 ? MAIN.length : place;
    };
    return names.concat(complete).sort((a, b) => order(a) - order(b) || a.localeCompare(b));
  }

  const MAIN = METRICS.main;

  // Of axes that change together (of a zipped sweep), those that tell all points apart, on the densest
  // grid; of others, all.
  function independent(data, subject, axes) {
    const rows = data.subjects[subject].runs.map((_, row) => row);
    const points = (some) => new Set(rows.map((row) => some.map((one) => one.of(row)).join())).size;
    const kept = axes.slice(0, 1);
    let known = points(kept);
    for (;;) {
      let best, density = 0;
      for (const one of axes.filter((axis) => !kept.includes(axis))) {
        const found = points([...kept, one]);
        const filled = found / (known * one.values.length);
        if (found > known && filled > density) [best, density] = [one, filled];
      }
      if (!best) return kept;
      kept.push(best);
      known = points(kept);
    }
  }

  // The first choice of dimensions: the axis with most values across, then others.
  function choice(data, subject, metric) {
    const all = dimensions(data, subject);
    const sorted = all.filter((one) => one.is_axis).sort((a, b) => b.values.length - a.values.length);
    const axes = independent(data, subject, sorted);
    // What tells rows apart besides: controllers before flows.
    const telling = (name) => all.find((one) => one.name === name || (one.tells || []).includes(name));
    const by = (telling("cc") || telling("id") || {}).name;
    const order = axes.map((one) => one.name).filter((name) => name !== by);
    const [x, second, third, fourth] = order;
    if (x === undefined) return { subject, metric, x: by || "", color: "", column: "", row: "" };
    // A few ids have a colour each; axes then have facets.
    if (by && all.find((one) => one.name === by).values.length <= 8) {
      return { subject, metric, x, color: by, column: second || "", row: third || "" };
    }
    return { subject, metric, x, color: second || "", column: third || "", row: fourth || "" };
  }

  // The same for a figure with another x axis: what would be there tells curves and facets apart.
  function without_x(choice) {
    const [color, column, row] = [choice.x, choice.color, choice.column, choice.row].filter(Boolean);
    return { ...choice, color: color || "", column: column || "", row: row || "" };
  }

  // The same in a heat map, for which two axes are needed.
  function for_heat(data, choice) {
    const names = independent(data, choice.subject, dimensions(data, choice.subject).filter((one) => one.is_axis)).map((one) => one.name);
    const [x, y, column, row] = names;
    return { ...choice, x: x || "", y: y || "", color: "", column: column || "", row: row || "" };
  }

  // The shares of the first of two senders, of which each has axes of its own: each against each.
  function shares(data) {
    if (!data.subjects.senders || !metrics(data, "senders").includes("share")) return null;
    const names = independent(data, "senders", dimensions(data, "senders").filter((one) => one.is_axis)).map((one) => one.name);
    const [y, x, column, row] = names.filter((name) => name.startsWith("hosts.")).concat(names.filter((name) => !name.startsWith("hosts.")));
    return x && { subject: "senders", metric: "share", x, y, color: "", column: column || "", row: row || "", only: { id: 0 } };
  }

  // What a kind of figure begins with.
  function start(data, kind, subject, metric) {
    const plain = choice(data, subject, metric);
    if (kind === "heat") return (metric === "share" && shares(data)) || for_heat(data, plain);
    return PLACES[kind].includes("x") ? plain : without_x(plain);
  }

  // A dimension in a place, which changes with what had it: each is told apart once.
  function put(choice, kind, place, name) {
    const other = name && PLACES[kind].find((key) => key !== place && choice[key] === name);
    return { ...choice, ...(other ? { [other]: choice[place] || "" } : {}), [place]: name };
  }

  // The places of a kind of figure.
  const PLACES = {
    boxes: ["x", "color", "column", "row"], lines: ["x", "color", "column", "row"], heat: ["x", "y", "column", "row"],
    cdf: ["color", "column", "row"], scatter: ["color", "column", "row"],
  };

  // What a figure does not tell apart, in a sentence.
  function pooled(data, choice, kind) {
    const told = PLACES[kind].map((place) => choice[place]).concat(Object.keys(choice.only || {}));
    const left = dimensions(data, choice.subject).filter((one) => one.values.length > 1 && !told.includes(one.name));
    // What follows from what is drawn is told with it.
    const rows = data.subjects[choice.subject].runs.map((_, row) => row);
    const drawn = dimensions(data, choice.subject).filter((one) => told.includes(one.name));
    const points = (some) => new Set(rows.map((row) => some.map((one) => one.of(row)).join())).size;
    const known = points(drawn);
    const names = left.filter((one) => points([...drawn, one]) > known).map((one) => one.label);
    return names.length ? `Pooled: all values of ${names.join(", ")}.` : "";
  }

  // A figure for a file, which says what it pools and what it leaves out.
  function noted(data, choice, kind) {
    const made = { boxes, lines, heat, cdf, scatter }[kind](data, choice);
    const left = dimensions(data, choice.subject).filter((one) => (choice.only || {})[one.name] !== undefined);
    const only = left.map((one) => `${one.label} ${one.values[choice.only[one.name]]}`).join(", ");
    const text = made && [only && `Only ${only}.`, pooled(data, choice, kind)].filter(Boolean).join(" ");
    if (!text) return made;
    const graphic = [{ type: "text", left: 66, bottom: 2, style: { text, fill: LIGHT.muted, fontSize: 11 } }];
    return { option: { ...made.option, graphic }, height: made.height + 16 };
  }

  // The values of a metric in rows; of a distribution, its five quantiles.
  function column(data, subject, metric) {
    const all = data.subjects[subject].metrics;
    if (!metric.endsWith(".*")) return all[metric] || [];
    const columns = QUANTILES.map((q) => all[metric.slice(0, -1) + q]);
    return columns[0].map((_, row) => (columns.some((one) => one[row] === null) ? null : columns.map((one) => one[row])));
  }

  function flat(values) {
    return values.flat().filter((value) => value !== null);
  }

  // R's quantile of type 7, of sorted values.
  function quantile(sorted, q) {
    const at = (sorted.length - 1) * q;
    const low = Math.floor(at);
    return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  }

  function mean(values) {
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  // Smallest, quartiles and largest; of distributions, the means of their quantiles.
  function box(values) {
    if (Array.isArray(values[0])) return QUANTILES.map((_, q) => mean(values.map((value) => value[q])));
    const sorted = [...values].sort((a, b) => a - b);
    return [0, 0.25, 0.5, 0.75, 1].map((q) => quantile(sorted, q));
  }

  // Rows with a value, by facet and colour.
  function grouped(data, choice) {
    const all = dimensions(data, choice.subject);
    const none = { name: "", label: "", values: [""], of: () => 0 };
    const find = (name) => all.find((one) => one.name === name) || none;
    const [x, color, facet, row] = [choice.x, choice.color, choice.column, choice.row].map(find);
    // Only rows with the values that were asked for.
    const only = Object.entries(choice.only || {}).map(([name, value]) => [find(name), value]).filter(([one]) => one.name);
    const values = column(data, choice.subject, choice.metric).map((value, row) =>
      (only.every(([one, at]) => one.of(row) === at) ? value : null));
    const [name, scale] = choice.unit || unit(choice.metric, flat(values));
    const scaled = values.map((value) =>
      value === null ? null : Array.isArray(value) ? value.map((one) => one * scale) : value * scale);
    return { x, color, facet, row, values: scaled, unit: name };
  }

  // A colour with an opacity of a quarter, which not every reader of SVG knows as #rrggbbaa.
  function faint(color) {
    return `rgba(${[1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)).join(",")},0.25)`;
  }

  function base(theme) {
    return {
      animation: false, color: theme.palette, backgroundColor: "transparent",
      textStyle: { color: theme.text, fontFamily: "system-ui, sans-serif" },
      aria: { enabled: true },
    };
  }

  function axis(theme, more) {
    return {
      nameTextStyle: { color: theme.text, lineHeight: LINE }, axisLabel: { color: theme.text, hideOverlap: true },
      axisLine: { show: true, lineStyle: { color: theme.muted } }, axisTick: { show: true, lineStyle: { color: theme.muted } },
      splitLine: { lineStyle: { color: theme.line } }, ...more,
    };
  }

  function plain_title(theme) {
    return { textStyle: { color: theme.text, fontSize: 12, lineHeight: LINE, fontWeight: "normal" } };
  }

  // A legend over as many lines as it needs, left of what saves the figure; and the height of the lines.
  const LEGEND_LINE = 24;
  function legend(theme, names, width) {
    const room = width - 40;
    const most = Math.max(8, Math.floor((room - 40) / LETTER));
    const data = [];
    let [used, lines] = [0, 1];
    for (const name of names) {
      const wide = Math.min(name.length, most) * LETTER + 40;
      if (used > 0 && used + wide > room) {
        data.push("\n");
        [used, lines] = [0, lines + 1];
      }
      used += wide;
      data.push(name);
    }
    const made = {
      type: "plain", top: 0, left: 0, width: room, padding: 2, itemGap: LEGEND_LINE - 14, textStyle: { color: theme.text },
      inactiveColor: theme.muted, data, formatter: (name) => (name.length > most ? `${name.slice(0, most - 1)}…` : name),
    };
    return { legend: made, height: lines * LEGEND_LINE };
  }

  // Facets side by side as far as there is room, each with its title.
  function facets(group, wide, width) {
    const cells = group.row.values.flatMap((row, r) => group.facet.values.map((column, c) => ({ r, c, row, column })));
    const across = Math.max(1, Math.min(group.facet.values.length, Math.floor(width / wide)));
    // A row of facets begins anew with each value of the row, and where the page ends.
    const lines = Math.ceil(group.facet.values.length / across);
    for (const cell of cells) {
      cell.left = cell.c % across;
      cell.top = cell.r * lines + Math.floor(cell.c / across);
      const part = (dimension, value) => (dimension.name ? `${dimension.label} ${value}` : "");
      cell.title = [part(group.facet, cell.column), part(group.row, cell.row)].filter(Boolean).join(", ");
    }
    return { cells, across, down: group.row.values.length * lines };
  }

  // Where names of values stand below an axis `wide` from its beginning, which is `left` from the edge:
  // side by side, if need be on up to three lines; or turned, and where a name would begin beyond the
  // edge, upright. `below` is the room that they take beyond a line.
  function places(names, wide, left) {
    const cell = wide / names.length;
    const size = (text) => text.length * LETTER;
    const longest = (lines) => Math.max(...lines.flat().map(size));
    // Many names are thinned out.
    if (names.length > 24 || !names.some((name) => name.length * 7.5 > cell)) return { below: 0, label: {} };
    if (longest(names) <= 96) return { below: Math.min(60, 4 * Math.max(...names.map((name) => name.length))), label: { rotate: 35 } };
    const label = (lines, rotate) => ({ rotate, lineHeight: LINE, formatter: (name) => (lines[names.indexOf(String(name))] || [String(name)]).join("\n") });
    const side = names.map((name) => wrapped(name, cell - 8));
    const most = Math.max(...side.map((lines) => lines.length));
    if (most <= 3 && longest(side) <= cell - 4) return { below: (most - 1) * LINE, label: label(side, 0) };
    if (longest(names) * 0.82 <= left + cell / 2) return { below: longest(names) * 0.57 + LINE / 2, label: { rotate: 35 } };
    const count = Math.max(1, Math.min(3, Math.floor(cell / LINE)));
    const upright = names.map((name) => wrapped(name, Math.max(96, size(name) / count + 24)));
    return { below: longest(upright), label: label(upright, 90) };
  }

  // The frame of a figure with facets: grids, axes and titles; `cells` get the number of their grid.
  function frame(group, theme, width, x, y) {
    const { cells, across, down } = facets(group, 280, width);
    const key = group.color.name === "" ? null : legend(theme, group.color.values.filter((_, number) => number < 60), width);
    // Names of rows stand left of the first facet of a line, and not between facets.
    const needed = y.type === "category" ? 34 + 6.5 * Math.max(...y.data.map((name) => String(name).length)) : 0;
    // Longer ones are wrapped.
    const rows = Math.min(Math.max(150, 0.3 * width), needed);
    const beside = { axisLabel: { color: theme.text, hideOverlap: true, lineHeight: LINE, formatter: (name) => wrapped(name, rows - 34).join("\n") } };
    const [left, right] = [Math.max(62, rows), 14];
    const wide = (width - left - right - (across - 1) * 58) / across;
    const names = x.type === "category" ? x.data.map(String) : [];
    const { below, label } = places(names, wide, left);
    // What does not fit on a line has several, for which there is room at every facet.
    const lines = needed > rows ? Math.max(...y.data.map((name) => wrapped(name, rows - 34).length)) : 0;
    const high = Math.max(190, lines * LINE * (y.type === "category" && y.data.length <= 24 ? y.data.length : 0));
    const titles = cells.map((cell) => wrapped(cell.title, wide));
    const above = (Math.max(...titles.map((lines) => lines.length)) - 1) * LINE;
    const x_name = wrapped(x.name, wide), y_name = wrapped(y.name, high + 40);
    const named = below + (x_name.length - 1) * LINE;
    const [top, gap] = [(key ? 16 + key.height : 14) + above, 78 + named + above];
    const option = { ...base(theme), grid: [], xAxis: [], yAxis: [], series: [], title: [] };
    cells.forEach((cell, number) => {
      const at = { left: left + cell.left * (wide + 58), top: top + 22 + cell.top * (high + gap) };
      option.grid.push({ ...at, width: wide, height: high });
      const labels = names.length && names.length <= 24 ? { axisLabel: { color: theme.text, interval: 0, ...label } } : {};
      option.xAxis.push(axis(theme, { gridIndex: number, nameLocation: "middle", nameGap: 28 + below, ...labels, ...x, name: x_name.join("\n") }));
      const aside = rows && cell.left > 0 ? { axisLabel: { show: false } } : needed > rows ? beside : {};
      option.yAxis.push(axis(theme, { gridIndex: number, nameLocation: "middle", nameGap: left - 16, ...aside, ...y, name: cell.left === 0 ? y_name.join("\n") : "" }));
      option.title.push({
        text: titles[number].join("\n"), left: at.left, top: at.top - 24 - (titles[number].length - 1) * LINE, ...plain_title(theme),
      });
    });
    if (key) option.legend = key.legend;
    return { option, cells, height: top + 22 + down * (high + gap) - gap + 52 + named };
  }

  // A round number of steps over these values, which all facets have.
  function extent(values) {
    let [low, high] = extremes(values);
    if (!Number.isFinite(low)) return {};
    if (low === high) [low, high] = [low - Math.abs(low) / 10, high + (Math.abs(high) / 10 || 1)];
    if (low > 0 && low < high / 2) low = 0;
    const step = 10 ** Math.floor(Math.log10(high - low));
    const by = [0.1, 0.2, 0.5, 1, 2].map((one) => one * step).find((one) => (high - low) / one <= 6) || 2 * step;
    const exact = (value) => Number(value.toPrecision(12));
    return { min: exact(Math.floor(low / by) * by), max: exact(Math.ceil(high / by) * by), interval: exact(by) };
  }

  // Math.min of very many values exceeds what a call may have.
  function extremes(values) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high];
  }

  function rows_of(group, cell) {
    const rows = [];
    group.values.forEach((value, row) => {
      if (value !== null && group.facet.of(row) === cell.c && group.row.of(row) === cell.r) rows.push(row);
    });
    return rows;
  }

  // The boxes of each cell, colour and place across, with the numbers of their values.
  function boxed(group, width) {
    return facets(group, 280, width).cells.map((cell) => {
      const rows = rows_of(group, cell);
      return group.color.values.map((_, c) => group.x.values.map((_, x) => {
        const values = rows.filter((row) => group.x.of(row) === x && group.color.of(row) === c).map((row) => group.values[row]);
        return values.length ? { five: box(values), count: values.length } : null;
      }));
    });
  }

  // More numbers than boxes have room for, as where a sweep draws them, are a scale with a point for
  // each row.
  const MOST_BOXES = 40;
  function is_scale(dimension) {
    return dimension.values.length > MOST_BOXES && numeric(dimension.values) !== null;
  }

  // Whether a choice of boxes is drawn as points, and says so.
  function are_points(data, choice) {
    return is_scale(grouped(data, choice).x);
  }

  // A metric over an axis of numbers: a point for each row; of a distribution, its median.
  function points(data, choice, theme, width) {
    const metric = choice.metric.replace(/\*$/, "p50");
    const group = grouped(data, { ...choice, metric });
    const { x, at } = scale_of(group.x);
    const { option, cells, height } = frame(group, theme, width, x, { type: "value", ...extent(flat(group.values)), name: title(metric, group.unit) });
    cells.forEach((cell, number) => {
      const rows = rows_of(group, cell);
      group.color.values.forEach((color, c) => {
        const found = rows.filter((row) => group.color.of(row) === c).map((row) => [at(group.x.of(row)), group.values[row]]);
        if (!found.length) return;
        option.series.push({
          type: "scatter", name: color || label(metric), data: found, xAxisIndex: number, yAxisIndex: number,
          itemStyle: { color: theme.palette[c % theme.palette.length] }, symbol: SYMBOLS[c % SYMBOLS.length],
          symbolSize: found.length > 200 ? 4 : 7, large: found.length > 2000,
        });
      });
    });
    const { unit } = numeric(group.x.values);
    option.tooltip = {
      confine: true, trigger: "item",
      formatter: (item) => `<b>${escape(item.seriesName)}</b><br>${show(item.value[1])} ${group.unit}<br>${escape(group.x.label)} ${show(item.value[0])} ${unit}`,
    };
    return { option, height };
  }

  function boxes(data, choice, theme = LIGHT, width = 860) {
    const group = grouped(data, choice);
    if (is_scale(group.x)) return points(data, choice, theme, width);
    const name = title(choice.metric, group.unit);
    const x = { type: "category", data: group.x.values, name: group.x.label };
    const found = boxed(group, width);
    const drawn = found.flat(2).flatMap((one) => (one ? one.five : []));
    const { option, cells, height } = frame(group, theme, width, x, { type: "value", ...extent(drawn), name });
    const is_distribution = choice.metric.endsWith(".*");
    const texts = is_distribution
      ? ["5th percentile", "25th percentile", "median", "75th percentile", "95th percentile"]
      : ["smallest", "lower quartile", "median", "upper quartile", "largest"];
    cells.forEach((_, number) => {
      group.color.values.forEach((color, c) => {
        const counts = found[number][c].map((one) => (one ? one.count : 0));
        const items = found[number][c].map((one) => (one ? one.five : ["-", "-", "-", "-", "-"]));
        if (!counts.some((count) => count > 0)) return;
        const paint = theme.palette[c % theme.palette.length];
        option.series.push({
          type: "boxplot", name: color || label(choice.metric), data: items, xAxisIndex: number, yAxisIndex: number,
          boxWidth: [4, 28], itemStyle: { color: faint(paint), borderColor: paint, borderWidth: 1.5 },
          tooltip: {
            formatter: (item) => {
              const five = item.value.slice(-5);
              const lines = texts.map((text, n) => `${text}: ${show(five[n])} ${group.unit}`);
              const runs = `${counts[item.dataIndex]} value${counts[item.dataIndex] === 1 ? "" : "s"}`;
              return [`<b>${escape(item.seriesName)}</b>, ${escape(item.name)}`, ...lines, runs].join("<br>");
            },
          },
        });
      });
    });
    option.tooltip = { trigger: "item", confine: true };
    return { option, height };
  }

  // Units of quantities in scenarios, by what they measure, with the factor to the unit that is shown.
  const QUANTITIES = [
    ["ms", { ns: 1e-6, us: 1e-3, ms: 1, s: 1e3, min: 6e4, h: 3.6e6 }],
    ["Mbit/s", { bit: 1e-6, kbit: 1e-3, mbit: 1, gbit: 1e3 }],
    ["kB", { B: 1e-3, kB: 1, KiB: 1.024, MB: 1e3, MiB: 1048.576, GB: 1e6, GiB: 1073741.824 }],
    ["packets", { p: 1 }],
    ["", { "": 1 }],
  ];

  // The values of an axis as numbers with a unit; null if they are none.
  function numeric(values) {
    const parts = values.map((value) => /^(-?\d+(?:\.\d+)?(?:e-?\d+)?) ?([a-zA-Z]*)$/.exec(String(value)));
    if (values.length < 2 || parts.some((part) => !part)) return null;
    const [name, factors] = QUANTITIES.find(([, factors]) => parts.every((part) => factors[part[2]] !== undefined)) || [];
    if (name === undefined) return null;
    const numbers = parts.map((part) => Number(part[1]) * factors[part[2]]);
    return { numbers, unit: name };
  }

  // A number is across on its scale, which is logarithmic where values are far apart; anything else has
  // a place each.
  function scale_of(dimension) {
    const found = numeric(dimension.values);
    if (!found) return { x: { type: "category", data: dimension.values, name: dimension.label }, at: (place) => place };
    const { numbers, unit } = found;
    const [low, high] = extremes(numbers);
    const name = unit ? `${dimension.label} (${unit})` : dimension.label;
    const far = low > 0 && high / low >= 100;
    return { x: far ? { type: "log", min: low, max: high, name } : { type: "value", ...extent(numbers), name }, at: (place) => numbers[place] };
  }

  // Medians over an axis, with the quartiles as bars; bounds are dashed.
  function lines(data, choice, theme = LIGHT, width = 860) {
    const group = grouped(data, choice);
    const bounds = (choice.bounds || []).map((bound) => bound * (choice.unit ? choice.unit[1] : 1));
    const { x, at } = scale_of(group.x);
    const name = choice.title || title(choice.metric, group.unit);
    const found = boxed(group, width);
    const drawn = found.flat(2).flatMap((one) => (one ? one.five.slice(1, 4) : []));
    const { option, cells, height } = frame(group, theme, width, x, { type: "value", ...extent(drawn.concat(bounds)), name });
    cells.forEach((_, number) => {
      const place = { xAxisIndex: number, yAxisIndex: number };
      group.color.values.forEach((color, c) => {
        const points = found[number][c].flatMap((one, x) => (one ? [[at(x), ...one.five.slice(1, 4), one.count]] : []));
        points.sort((one, other) => one[0] - other[0]);
        if (!points.length) return;
        const common = { ...place, name: color || label(choice.metric), itemStyle: { color: theme.palette[c % theme.palette.length] } };
        option.series.push({
          ...common, type: "line", data: points.map((point) => [point[0], point[2]]), symbol: SYMBOLS[c % SYMBOLS.length], symbolSize: 7,
          lineStyle: { width: 1.5 }, tooltip: {
            formatter: (item) => {
              const [, low, middle, high, count] = points[item.dataIndex];
              const lines = [`median: ${show(middle)} ${group.unit}`, `quartiles: ${show(low)} to ${show(high)} ${group.unit}`];
              const across = numeric(group.x.values) ? show(item.value[0]) : group.x.values[item.value[0]];
              return [`<b>${escape(item.seriesName)}</b>, ${escape(across)}`, ...lines, `${count} value${count === 1 ? "" : "s"}`].join("<br>");
            },
          },
        });
        if (points.some((point) => point[3] > point[1])) option.series.push({ ...common, ...bars(points), silent: true, tooltip: { show: false } });
      });
      if (bounds.length) {
        option.series.push({ ...place, type: "line", data: [], silent: true, markLine: {
          symbol: "none", animation: false, label: { show: false }, lineStyle: { color: theme.text, type: "dashed", width: 1 },
          data: bounds.map((bound) => ({ yAxis: bound })),
        } });
      }
    });
    option.tooltip = { trigger: "item", confine: true };
    return { option, height };
  }

  // Vertical bars with ends, from the second number of each point to the fourth.
  function bars(points) {
    const line = (x1, y1, x2, y2, api) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: api.visual("color"), lineWidth: 1.2 } });
    return {
      type: "custom", data: points, encode: { x: 0, y: [1, 3] },
      renderItem: (_, api) => {
        const [x, low] = api.coord([api.value(0), api.value(1)]);
        const [, high] = api.coord([api.value(0), api.value(3)]);
        return { type: "group", children: [line(x, low, x, high, api), line(x - 4, low, x + 4, low, api), line(x - 4, high, x + 4, high, api)] };
      },
    };
  }

  // The expectations that are about several points, each with the values of its runs there, so that
  // they can be drawn as results are.
  function expected(data) {
    const found = new Map();
    for (const one of data.expectations) {
      const key = JSON.stringify([one.source, one.metric, one.expected, one.runs]);
      found.set(key, (found.get(key) || []).concat([one]));
    }
    return [...found.values()].map(over_points).filter(Boolean);
  }

  // The values of the axes at the point of an expectation, by their names.
  function named(one) {
    const text = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
    return Object.fromEntries(Object.entries(one.params || {}).map(([axis, value]) => [axis, (one.labels || {})[axis] ?? text(value)]));
  }

  function over_points(all) {
    const { source, metric, expected } = all[0];
    const names = Object.keys(all[0].params || {});
    const text = (one, name) => named(one)[name];
    const rows = all.flatMap((one, point) => (one.values || []).map((value) => ({ point, value })));
    const axes = names.map((name) => {
      const values = [...new Set(all.map((one) => text(one, name)))];
      return { name, values, rows: rows.map((row) => values.indexOf(text(all[row.point], name))) };
    });
    if (!axes.some((axis) => axis.values.length > 1)) return null;
    // What is relative to something has no unit.
    const path = metric.includes(" relative to ") ? "" : metric.split(" ").find((word) => /[._]/.test(word)) || "";
    const values = rows.map((row) => row.value);
    const own = { axes, subjects: { run: { runs: rows.map((_, row) => row), names: {}, metrics: { value: values } } } };
    // A number goes across before names do.
    const all_axes = dimensions(own, "run").sort((a, b) => Boolean(numeric(b.values)) - Boolean(numeric(a.values)) || b.values.length - a.values.length);
    const [x, color, column, row] = independent(own, "run", all_axes).map((one) => one.name);
    return {
      name: `${source ? `${source}: ` : ""}${metric}, expected ${expected}`, data: own,
      choice: {
        subject: "run", metric: "value", x, color: color || "", column: column || "", row: row || "", unit: unit(path, values),
        title: unit(path, values)[0] || "value", bounds: (expected.match(/-?\d+(\.\d+)?(e-?\d+)?/g) || []).map(Number),
      },
    };
  }

  function cdf(data, choice, theme = LIGHT, width = 860) {
    const group = grouped(data, { ...choice, metric: choice.metric.replace(/\*$/, "p50") });
    const metric = choice.metric.replace(/\*$/, "p50");
    const x = { type: "value", ...extent(flat(group.values)), name: title(metric, group.unit) };
    const { option, cells, height } = frame(group, theme, width, x, { type: "value", min: 0, max: 1, name: "Fraction of values" });
    cells.forEach((cell, number) => {
      const rows = rows_of(group, cell);
      group.color.values.forEach((color, c) => {
        const sorted = rows.filter((row) => group.color.of(row) === c).map((row) => group.values[row]).sort((a, b) => a - b);
        if (!sorted.length) return;
        const points = sorted.map((value, n) => [value, (n + 1) / sorted.length]);
        option.series.push({
          type: "line", step: "end", name: color || label(metric), xAxisIndex: number, yAxisIndex: number,
          data: [[sorted[0], 0], ...points], showSymbol: sorted.length < 30, symbolSize: 4,
          symbol: SYMBOLS[c % SYMBOLS.length], lineStyle: { width: 1.5 },
          itemStyle: { color: theme.palette[c % theme.palette.length] },
        });
      });
    });
    option.tooltip = {
      trigger: "item", confine: true,
      formatter: (item) => `<b>${escape(item.seriesName)}</b><br>${show(item.value[1] * 100)} % up to ${show(item.value[0])} ${group.unit}`,
    };
    return { option, height };
  }

  function heat(data, choice, theme = LIGHT, width = 860) {
    // Distributions have a median each.
    const metric = choice.metric.replace(/\*$/, "p50");
    const group = grouped(data, { ...choice, metric, color: "", y: undefined });
    const other = dimensions(data, choice.subject).find((one) => one.name === choice.y);
    if (!other || !group.x.name) return null;
    const x = { type: "category", data: group.x.values, name: group.x.label, splitArea: { show: false } };
    const y = { type: "category", data: other.values, name: other.label };
    const { option, cells, height } = frame(group, theme, width - 84, x, y);
    const all = [];
    cells.forEach((cell, number) => {
      const rows = rows_of(group, cell);
      const items = [];
      group.x.values.forEach((_, a) => other.values.forEach((_, b) => {
        const values = rows.filter((row) => group.x.of(row) === a && other.of(row) === b).map((row) => group.values[row]);
        if (values.length) items.push([a, b, mean(values), values.length]);
      }));
      all.push(...items.map((item) => item[2]));
      option.series.push({
        type: "heatmap", name: label(metric), data: items, xAxisIndex: number, yAxisIndex: number, encode: { value: 2 },
        label: { show: items.length <= 60 && cells.length <= 4, formatter: (item) => (metric === "share" ? `${Math.round(100 * item.value[2])} %` : show(item.value[2])), color: "#fff", textBorderColor: "#0008", textBorderWidth: 2 },
        itemStyle: { borderColor: "transparent" },
      });
    });
    const [low, high] = metric === "share" ? [0, 1] : extremes(all);
    option.visualMap = {
      min: low, max: high > low ? high : low + 1, dimension: 2, calculable: true, right: 0, top: 34, itemHeight: 120,
      text: [group.unit || "value", ""], textStyle: { color: theme.text }, inRange: { color: VIRIDIS }, formatter: show,
    };
    option.tooltip = {
      confine: true,
      formatter: (item) => `${escape(group.x.label)} ${escape(group.x.values[item.value[0]])}, ${escape(other.label)} ${escape(other.values[item.value[1]])}<br>` +
        `<b>${escape(title(metric, group.unit))}</b>: mean ${show(item.value[2])} of ${item.value[3]}`,
    };
    return { option, height };
  }

  // The ellipse in which two thirds of points with these means and covariances are: one standard
  // deviation along its axes.
  function ellipse(points) {
    const [mx, my] = [mean(points.map((p) => p[0])), mean(points.map((p) => p[1]))];
    const over = (f) => points.reduce((sum, p) => sum + f(p[0] - mx, p[1] - my), 0) / Math.max(1, points.length - 1);
    const [xx, yy, xy] = [over((x) => x * x), over((_, y) => y * y), over((x, y) => x * y)];
    const root = Math.sqrt(((xx - yy) / 2) ** 2 + xy * xy);
    const [a, b] = [Math.sqrt(Math.max(0, (xx + yy) / 2 + root)), Math.sqrt(Math.max(0, (xx + yy) / 2 - root))];
    const turn = Math.atan2(2 * xy, xx - yy) / 2;
    const line = [];
    for (let step = 0; step <= 60; step++) {
      const [u, v] = [a * Math.cos((step * Math.PI) / 30), b * Math.sin((step * Math.PI) / 30)];
      line.push([mx + u * Math.cos(turn) - v * Math.sin(turn), my + u * Math.sin(turn) + v * Math.cos(turn)]);
    }
    return { line, center: [mx, my] };
  }

  // Throughput against delay: up and to the right is better, as in Copa's and Pantheon's papers.
  function scatter(data, choice, theme = LIGHT, width = 860) {
    const over = { ...choice, metric: choice.across.replace(/\*$/, "p50") };
    const group = grouped(data, { ...choice, metric: choice.metric.replace(/\*$/, "p50"), x: "" });
    const across = grouped(data, over);
    const delay = /_ms|_s$/.test(over.metric);
    const x = { type: "value", ...extent(flat(across.values)), inverse: delay, name: title(over.metric, across.unit) + (delay ? ", less is better" : "") };
    const { option, cells, height } = frame(group, theme, width, x, { type: "value", ...extent(flat(group.values)), name: title(choice.metric.replace(/\*$/, "p50"), group.unit) });
    cells.forEach((cell, number) => {
      const rows = rows_of(group, cell).filter((row) => across.values[row] !== null);
      group.color.values.forEach((color, c) => {
        const points = rows.filter((row) => group.color.of(row) === c).map((row) => [across.values[row], group.values[row]]);
        if (!points.length) return;
        const common = { name: color || label(choice.metric), xAxisIndex: number, yAxisIndex: number, itemStyle: { color: theme.palette[c % theme.palette.length] } };
        option.series.push({ ...common, type: "scatter", data: points, symbol: SYMBOLS[c % SYMBOLS.length], symbolSize: points.length > 200 ? 4 : 7, large: points.length > 2000 });
        if (points.length > 2) {
          const { line, center } = ellipse(points);
          option.series.push({ ...common, type: "line", data: line, symbol: "none", lineStyle: { width: 1.5 }, silent: true, tooltip: { show: false } });
          option.series.push({ ...common, type: "scatter", data: [center], symbol: "path://M-1,-6H1V-1H6V1H1V6H-1V1H-6V-1H-1Z", symbolSize: 12 });
        }
      });
    });
    option.tooltip = {
      confine: true, trigger: "item",
      formatter: (item) => `<b>${escape(item.seriesName)}</b><br>${show(item.value[1])} ${group.unit}<br>${show(item.value[0])} ${across.unit}`,
    };
    return { option, height };
  }

  const PANELS = METRICS.panels.map(([kind, key]) => [kind, key, METRICS.series[key] || label(key)]);
  const MOST_LINES = 24;

  // What links carry is that of the flows, where there are any.
  function panels_for(has_flows) {
    return PANELS.filter(([kind, key]) => !has_flows || kind !== "link" || key !== "throughput_bps");
  }

  const MOST_CHANGES = 6;

  // Panels over each other with one axis of time, and what was changed in the run on the way.
  function stack(theme, width, panels, names, changes = []) {
    const key = legend(theme, names, width);
    const [high, gap, left] = [110, 26, 66];
    const option = { ...base(theme), grid: [], xAxis: [], yAxis: [], series: [], title: [] };
    const told = changes.slice(0, MOST_CHANGES).flatMap(({ at_s, set }, number) => wrapped(`${number + 1}: ${set.join(", ")} at ${show(at_s)} s`, width - left));
    if (changes.length > MOST_CHANGES) told.push(`and ${changes.length - MOST_CHANGES} more changes`);
    let below = 16 + key.height;
    if (told.length) {
      option.title.push({ text: told.join("\n"), left, top: below - 12, ...plain_title(theme) });
      below += told.length * LINE + 8;
    }
    panels.forEach((panel, number) => {
      const lines = wrapped(panel.title, width - left);
      // Numbers of changes are between the first title and its panel.
      const raised = changes.length && number === 0 ? 14 : 0;
      const at = below + 18 + (lines.length - 1) * LINE + raised;
      below = at + high + gap - 18;
      const last = number === panels.length - 1;
      option.grid.push({ left, top: at, width: width - left - 18, height: high });
      option.xAxis.push(axis(theme, {
        type: "value", gridIndex: number, min: 0, max: panel.end, name: last ? "Time (s)" : "", nameLocation: "middle", nameGap: 26,
        axisLabel: { show: last, color: theme.text }, splitLine: { show: false }, axisPointer: { show: true, label: { show: false } },
      }));
      option.yAxis.push(axis(theme, { type: "value", gridIndex: number, min: panel.min, max: panel.max, interval: panel.interval, splitNumber: 3, name: panel.unit, nameLocation: "middle", nameGap: 48 }));
      option.title.push({ text: lines.join("\n"), left, top: at - 20 - (lines.length - 1) * LINE - raised, ...plain_title(theme) });
      for (const series of panel.series) option.series.push({ ...series, xAxisIndex: number, yAxisIndex: number });
      if (changes.length) option.series.push({ ...marks(theme, changes, number === 0), xAxisIndex: number, yAxisIndex: number });
    });
    const all = panels.map((_, number) => number);
    option.axisPointer = { link: [{ xAxisIndex: "all" }] };
    option.dataZoom = [
      { type: "inside", xAxisIndex: all, filterMode: "none", zoomOnMouseWheel: "ctrl" },
      { type: "slider", xAxisIndex: all, filterMode: "none", height: 18, bottom: 6, textStyle: { color: theme.text }, brushSelect: true },
    ];
    option.legend = key.legend;
    return { option, height: below + 18 + 56 };
  }

  // Lines where a run was changed from outside, with their numbers.
  function marks(theme, changes, numbered) {
    return {
      type: "line", data: [], silent: true, markLine: {
        symbol: "none", animation: false, lineStyle: { color: theme.text, type: "dashed", width: 1 },
        label: { show: numbered, color: theme.text, distance: 2 },
        data: changes.map((change, number) => ({ xAxis: change.at_s, label: { formatter: String(number + 1) } })),
      },
    };
  }

  function color_of(theme, names, name) {
    return theme.palette[names.indexOf(name) % theme.palette.length];
  }

  // A count of 0 throughout tells nothing, nor does a threshold that nothing has moved.
  function says_something(key, values) {
    const known = values.filter((value) => value !== null);
    return key === "reordering" ? known.some((value) => value !== known[0]) : known.some((value) => value > 0);
  }

  function time(record, theme = LIGHT, width = 860) {
    if (!record.series) return null;
    // Links on which nothing waits tell nothing beside flows.
    const has_flows = record.series.some((one) => one.kind !== "link");
    const telling = ["backlog_packets", "dropped_packets", "sojourn_ms", ...(has_flows ? [] : ["throughput_bps"])];
    const busy = (one) => one.kind !== "link" || telling.some((key) => (one.values[key] || []).some((value) => value > 0));
    const is_link = (line) => (line.kind === "link" ? 1 : 0);
    const lines = record.series.filter((one) => one.kind !== "subflow" && busy(one)).sort((a, b) => is_link(a) - is_link(b)).slice(0, MOST_LINES);
    const names = lines.map((line) => line.id);
    const panels = [];
    for (const [kind, key, text] of panels_for(has_flows)) {
      const having = lines.filter((line) => (line.kind === "link") === (kind === "link") && line.values[key]);
      if (!having.some((line) => says_something(key, line.values[key]))) continue;
      const [name, scale] = unit(key, having.flatMap((line) => line.values[key]));
      const series = having.map((line) => drawn(line, key, scale, line.id, color_of(theme, names, line.id)));
      panels.push(panel_of(text, key, name, record.duration_s, series));
    }
    return panels.length ? told(panels, stack(theme, width, panels, names, record.changes)) : null;
  }

  // A line of a series under a name. Counts are of intervals; what is known now and then alone, such as
  // the round trips of a ping, is joined.
  function drawn(line, key, scale, name, color) {
    const values = line.values[key];
    const known = values.reduce((places, value, n) => (value === null ? places : [...places, n]), []);
    const sparse = known.length > 1 && known[known.length - 1] - known[0] + 1 > 1.5 * known.length;
    return {
      type: "line", name, showSymbol: known.length === 1, sampling: "minmax", lineStyle: { width: 1.2 }, connectNulls: sparse,
      ...(COUNTS.test(key) ? { step: "start", areaStyle: { opacity: 0.25 } } : {}),
      itemStyle: { color },
      data: line.values.to_s.map((to, n) => [to, values[n] === null ? null : values[n] * scale]),
    };
  }

  const COUNTS = /dropped|marked|retrans/;

  function panel_of(text, key, name, end, series) {
    const unit = name === "packets" && COUNTS.test(key) ? "per interval" : name;
    // A link is not used by more than all of it, but for a part of a packet.
    const whole = key === "utilization" && series.every((one) => one.data.every(([, value]) => value <= 101));
    return { title: title_of(text, key), unit, min: 0, ...(whole ? { max: 100, interval: 50 } : {}), end, series };
  }

  function told(panels, { option, height }) {
    option.tooltip = {
      trigger: "axis", confine: true, axisPointer: { type: "line" },
      formatter: (items) => {
        const units = panels.map((panel) => panel.unit);
        const lines = items.filter((item) => item.value[1] !== null).map((item) =>
          `${item.marker}${escape(item.seriesName)}: ${show(item.value[1])} ${units[item.axisIndex] || ""}`);
        return [`${show(items[0].value[0])} s`, ...lines.slice(0, 24)].join("<br>");
      },
    };
    return { option, height };
  }

  const ALL = "all flows";

  // What may be laid over each other: flows and links that several runs have.
  function overlays(data) {
    const having = data.records.filter((record) => record.series);
    const count = new Map();
    for (const record of having) {
      for (const one of record.series) if (one.kind !== "subflow") count.set(one.id, [one.kind === "link", (count.get(one.id)?.[1] || 0) + 1]);
    }
    const several = [...count].filter(([, [, runs]]) => runs > 1);
    const longest = (id) => Math.max(0, ...having.flatMap((record) => record.series.filter((one) => one.id === id).flatMap((one) => one.values.backlog_packets || [])));
    // The longest queue first.
    const links = several.filter(([, [is_link]]) => is_link).map(([id]) => id).sort((a, b) => longest(b) - longest(a));
    const flows = several.filter(([, [is_link]]) => !is_link).map(([id]) => id);
    return having.length > 1 && several.length ? { flows: flows.length > 1 ? [ALL, ...flows] : flows, links } : null;
  }

  // All flows together: what they carry, and what they send again.
  function together(record) {
    const flows = record.series.filter((one) => one.kind === "flow");
    if (!flows.length) return null;
    const values = { to_s: flows[0].values.to_s };
    for (const key of ["throughput_bps", "retransmitted_packets"]) {
      const having = flows.filter((flow) => flow.values[key]);
      values[key] = values.to_s.map((_, n) => having.reduce((sum, flow) => sum + (flow.values[key][n] || 0), 0));
    }
    return { id: ALL, kind: "flow", values };
  }

  // A flow and a link in each of several runs.
  function overlay(data, choice, theme = LIGHT, width = 860) {
    const having = data.records.filter((record) => record.series).slice(0, MOST_LINES);
    const names = having.map((record) => record.name);
    const panels = [];
    for (const [kind, key, text] of panels_for(choice.flow !== undefined)) {
      const id = kind === "link" ? choice.link : choice.flow;
      const of = (record) => (kind !== "link" && id === ALL ? together(record) : record.series.find((one) => one.id === id && one.kind !== "subflow"));
      const lines = having.map((record) => [record, of(record)]).filter(([, line]) => line && line.values[key]);
      if (!lines.some(([, line]) => says_something(key, line.values[key]))) continue;
      const [name, scale] = unit(key, lines.flatMap(([, line]) => line.values[key]));
      const series = lines.map(([record, line]) => drawn(line, key, scale, record.name, color_of(theme, names, record.name)));
      const end = Math.max(...having.map((record) => record.duration_s));
      panels.push(panel_of(width < 600 ? text : `${text} of ${id}`, key, name, end, series));
    }
    return panels.length ? told(panels, stack(theme, width, panels, names)) : null;
  }

  function title_of(text, key) {
    return key === "rtt_ms" || key === "sojourn_ms" ? `${text}, mean of the interval` : text;
  }

  // What a queue did with every packet.
  function queue(record, link, theme = LIGHT, width = 860) {
    const found = record.queues[link];
    if (!found) return null;
    const points = (kind) => (found[kind] ? found[kind].points : []);
    const dots = (name, kind, symbol, color, size) => ({ type: "scatter", name, data: points(kind), symbol, symbolSize: size, large: !symbol, itemStyle: { color } });
    const line = (name, kind, color) => ({ type: "line", step: "end", name, data: points(kind), showSymbol: false, sampling: "minmax", lineStyle: { width: 1 }, itemStyle: { color } });
    const [one, two, three, four, five] = theme.palette;
    const cross = "path://M-4,-5L-5,-4L-1,0L-5,4L-4,5L0,1L4,5L5,4L1,0L5,-4L4,-5L0,-1Z";
    const panels = [
      { title: "Delay of each packet that left, and of those that were dropped or marked", unit: "ms", min: 0, series: [
        dots("departures", "delay_ms", "circle", one, 2.5), dots("marks", "marks", "triangle", two, 7), dots("drops", "drops", cross, five, 8)] },
      { title: "Queue", unit: "packets", min: 0, series: [line("backlog", "backlog", three)] },
    ];
    if (points("probability").length) panels.push({ title: "Drop or mark probability", unit: "", min: 0, series: [line("probability", "probability", four)] });
    panels.forEach((panel) => { panel.end = record.duration_s; });
    const names = panels.flatMap((panel) => panel.series).filter((series) => series.data.length).map((series) => series.name);
    const { option, height } = stack(theme, width, panels, names, record.changes);
    option.tooltip = { trigger: "item", confine: true, formatter: (item) => `<b>${escape(item.seriesName)}</b><br>${show(item.value[0])} s<br>${show(item.value[1])}` };
    return { option, height };
  }

  // Sequence numbers over time, as tcptrace draws them.
  function sequence(record, flow, theme = LIGHT, width = 860) {
    const found = record.sequences[flow];
    if (!found) return null;
    const kilo = (kind) => (found[kind] ? found[kind].points.map(([at, seq]) => [at, seq / 1e3]) : []);
    const lengths = found.again ? found.again.points.map(([, from, to]) => to - from) : [];
    const steps = found.sent ? found.sent.points.slice(1, 200).map(([, seq], n) => seq - found.sent.points[n][1]).filter((step) => step > 0) : [];
    const segment = Math.min(...lengths.filter((length) => length > 0), ...steps, 1460);
    const sacked = found.sacked ? found.sacked.points.map(([at, ack, count]) => [at, (ack + count * segment) / 1e3]) : [];
    const [one, two, three, four, five] = theme.palette;
    const cross = "path://M-4,-5L-5,-4L-1,0L-5,4L-4,5L0,1L4,5L5,4L1,0L5,-4L4,-5L0,-1Z";
    const dots = (name, data, symbol, color, size) => ({ type: "scatter", name, data, symbol, symbolSize: size, itemStyle: { color }, large: symbol === "rect" });
    const series = [
      dots("data at the first queue", kilo("sent"), "rect", one, 2.5),
      { type: "line", step: "end", name: "acknowledged", data: kilo("acked"), showSymbol: false, sampling: "lttb", lineStyle: { width: 1.2 }, itemStyle: { color: three } },
      dots("highest SACK", sacked, "circle", four, 3),
      dots("sent again", kilo("again"), "triangle", two, 7),
      dots("dropped", kilo("dropped"), cross, five, 9),
      dots("declared lost", kilo("lost"), "emptyCircle", theme.palette[5], 8),
    ].filter((one) => one.data.length);
    if (!series.length) return null;
    const { option, height } = stack(theme, width, [{ title: "Sequence number", unit: "kB", end: record.duration_s, series }], series.map((one) => one.name), record.changes);
    option.grid[0].height = 360;
    option.yAxis[0].splitNumber = 6;
    option.dataZoom.push({ type: "inside", yAxisIndex: [0], filterMode: "none", zoomOnMouseWheel: "ctrl" });
    option.tooltip = { trigger: "item", confine: true, formatter: (item) => `<b>${escape(item.seriesName)}</b><br>${show(item.value[0])} s<br>${show(item.value[1])} kB` };
    return { option, height: height + 250 };
  }

  // What a controller infers from gradients of delay, a point for each round trip that it measured.
  function gradients(record, flow, theme = LIGHT, width = 860) {
    const found = (record.gradients || {})[flow];
    if (!found) return null;
    const [one, two, three, four, five] = theme.palette;
    const line = (name, place, color, more = {}, scale = 1) => ({
      type: "line", name, showSymbol: found.points.length < 3, lineStyle: { width: 1.2 }, itemStyle: { color }, ...more,
      data: found.points.map((point) => [point[0], point[place] * scale]),
    });
    const [kind, scale] = unit("cwnd_bytes", found.points.flatMap((point) => [point[4], point[5]]));
    const zero = { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: theme.text, width: 1, type: "solid", opacity: 0.6 }, data: [{ yAxis: 0 }] };
    const panels = [
      { title: "Smoothed gradients of the shortest and the longest RTT", unit: "ms / RTT", series: [line("gradient, shortest RTT", 1, one, { markLine: zero }), line("gradient, longest RTT", 2, two)] },
      { title: "State of the queue, inferred", unit: "", min: 0, series: [line("queue", 3, three, { step: "end" })], labels: found.states },
      { title: "Congestion window, and shadow window", unit: kind, min: 0, series: [line("congestion window", 4, four, {}, scale), line("shadow window", 5, five, { lineStyle: { width: 1.2, type: "dashed" } }, scale)] },
    ];
    panels.forEach((panel) => { panel.end = record.duration_s; });
    const { option, height } = stack(theme, width, panels, panels.flatMap((panel) => panel.series).map((series) => series.name), record.changes);
    panels.forEach((panel, number) => {
      if (!panel.labels) return;
      const text = (value) => panel.labels[value] || "";
      Object.assign(option.yAxis[number], { max: panel.labels.length - 1, interval: 1, axisLabel: { color: theme.text, formatter: text } });
    });
    option.tooltip = {
      trigger: "axis", confine: true, axisPointer: { type: "line" },
      formatter: (items) => [`${show(items[0].value[0])} s`, ...items.map((item) => {
        const { unit: of, labels } = panels[item.axisIndex];
        return `${item.marker}${escape(item.seriesName)}: ${labels ? labels[item.value[1]] : `${show(item.value[1])} ${of}`}`;
      })].join("<br>"),
    };
    return { option, height };
  }

  // Flows at places, by name; where any has reordering, those without tell nothing.
  function disordered(all, has) {
    const found = all.some(has) ? all.filter(has) : all;
    return [...found].sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, MOST_LINES);
  }

  // Reordering over time: of each flow at each place the reordered packets, and the displacements.
  function reordering(record, theme = LIGHT, width = 860) {
    const lines = disordered(record.reordering || [], (line) => line.values.reordered_ratio.some((ratio) => ratio > 0));
    if (!lines.length) return null;
    const names = lines.map((line) => line.id);
    const drawn = (line, key, style, scale = 1) => ({
      type: "line", name: line.id, showSymbol: line.values.time_s.length < 3, sampling: "minmax", lineStyle: { width: 1.2, ...style },
      itemStyle: { color: color_of(theme, names, line.id) },
      data: line.values.time_s.map((at, n) => [at, line.values[key][n] === null ? null : line.values[key][n] * scale]),
    });
    const each = (...keys) => lines.flatMap((line) => keys.map(([key, style, scale]) => drawn(line, key, style, scale)));
    const dashed = { type: "dashed" };
    const panels = [
      { title: "Packets that arrived after one sent later", unit: "%", min: 0, series: each(["reordered_ratio", {}, 100]) },
      { title: "Displacement: median, and quartiles (dashed)", unit: "packets", series:
        each(["displacement_p25", dashed], ["displacement_p50", {}], ["displacement_p75", dashed]) },
      { title: "Displacement: the earliest and the latest packet", unit: "packets", series: each(["displacement_min", {}], ["displacement_max", {}]) },
    ];
    if (lines.some((line) => (line.values.duplicates || []).some((count) => count > 0))) {
      panels.push({ title: "Further copies of packets that had arrived", unit: "packets", min: 0, series: each(["duplicates", {}]) });
    }
    panels.forEach((panel) => { panel.end = record.duration_s; });
    const { option, height } = stack(theme, width, panels, names, record.changes);
    option.tooltip = {
      trigger: "axis", confine: true, axisPointer: { type: "line" },
      formatter: (items) => [`${show(items[0].value[0])} s`, ...items.filter((item) => item.value[1] !== null).slice(0, 24).map((item) =>
        `${item.marker}${escape(item.seriesName)}: ${show(item.value[1])} ${panels[item.axisIndex].unit}`)].join("<br>"),
    };
    return { option, height };
  }

  // The displacement of each packet by sequence numbers, and the reorder density (RFC 5236) as bars.
  function displacement(record, flow, theme = LIGHT, width = 860) {
    const found = (record.displacements || {})[flow];
    if (!found) return null;
    const { option, height } = stack(theme, width, [{ title: "Displacement of each packet, by sequence numbers", unit: "packets", end: record.duration_s, series: [
      { type: "scatter", name: "displacement", data: found.points, symbol: "circle", symbolSize: 2.5, large: true, itemStyle: { color: theme.palette[0] } }] }], [], record.changes);
    const [high, gap] = [190, 104];
    const [first, last] = extremes(found.density.map((bar) => bar[0]));
    const shares = new Map(found.density);
    const bars = Array.from({ length: last - first + 1 }, (_, n) => first + n);
    option.grid[0].height = high;
    const at = option.grid[0].top + high + gap;
    option.grid.push({ ...option.grid[0], top: at });
    option.xAxis.push(axis(theme, {
      type: "category", gridIndex: 1, data: bars.map(String), name: "Displacement (packets; early < 0 < late)", nameLocation: "middle", nameGap: 26, splitLine: { show: false },
    }));
    option.yAxis.push(axis(theme, { type: "value", gridIndex: 1, min: 0, splitNumber: 3, name: "% of packets", nameLocation: "middle", nameGap: 48 }));
    option.title.push({ ...option.title[0], text: "Reorder density", top: at - 20 });
    option.series.push({
      type: "bar", name: "density", xAxisIndex: 1, yAxisIndex: 1, barCategoryGap: "10%", itemStyle: { color: theme.palette[1] },
      data: bars.map((by) => (shares.get(by) || 0) * 100),
    });
    option.axisPointer = { link: [{ xAxisIndex: [0] }] };
    // What is zoomed is the time, above the bars.
    option.dataZoom = option.dataZoom.map((zoom) => (zoom.type === "slider" ? { ...zoom, bottom: undefined, top: at - 62 } : zoom));
    option.legend = { show: false };
    option.tooltip = {
      trigger: "item", confine: true,
      formatter: (item) => (item.seriesType === "bar" ? `${item.name} packets<br>${show(item.value)} % of packets` : `${show(item.value[0])} s<br>${show(item.value[1])} packets`),
    };
    return { option, height: height + 2 * high + gap - 110 - 40 };
  }

  // Reorder density and reorder buffer-occupancy density (RFC 5236).
  function density(record, theme = LIGHT, width = 860) {
    const measured = (record.densities || []).filter((one) => one.density.shares.length);
    const found = disordered(measured, (one) => one.density.shares.length > 1 || one.density.from !== 0);
    if (!found.length) return null;
    const names = found.map((one) => one.id);
    // From zero to zero, but that no buffer holds fewer packets than none.
    const ends = (from, shares, low) => [...(from > low ? [[from - 1, 0]] : []), ...shares.map((share, n) => [from + n, share * 100]), [from + shares.length, 0]];
    const line = (one, from, shares, low) => ({
      type: "line", step: "middle", name: one.id, showSymbol: false, lineStyle: { width: 1.4 }, areaStyle: { opacity: 0.12 },
      itemStyle: { color: color_of(theme, names, one.id) }, data: ends(from, shares, low),
    });
    const panels = [
      { title: "Reorder density", unit: "% of packets", x: "Displacement (packets; early < 0 < late)", series: found.map((one) => line(one, one.density.from, one.density.shares, -Infinity)) },
      { title: "Reorder buffer-occupancy density", unit: "% of arrivals", x: "Packets in a buffer that restores the order", series: found.map((one) => line(one, 0, one.rbd.shares, 0)) },
    ];
    const key = legend(theme, names, width);
    const [top, high, gap, left] = [34 + key.height, 190, 78, 66];
    const option = { ...base(theme), grid: [], xAxis: [], yAxis: [], series: [], title: [] };
    panels.forEach((panel, number) => {
      const at = top + number * (high + gap);
      const values = panel.series.flatMap((series) => series.data.map((point) => point[0]));
      const [low, most] = extremes(values);
      option.grid.push({ left, top: at, width: width - left - 18, height: high });
      option.xAxis.push(axis(theme, {
        type: "value", gridIndex: number, min: low, max: most, minInterval: 1, name: panel.x, nameLocation: "middle",
        nameGap: 26, splitLine: { show: false },
      }));
      option.yAxis.push(axis(theme, { type: "value", gridIndex: number, min: 0, name: panel.unit, nameLocation: "middle", nameGap: 48 }));
      option.title.push({ text: panel.title, left, top: at - 22, ...plain_title(theme) });
      for (const series of panel.series) option.series.push({ ...series, xAxisIndex: number, yAxisIndex: number });
    });
    option.legend = key.legend;
    option.tooltip = { trigger: "axis", confine: true, formatter: (items) => [show(items[0].value[0]), ...items.map((item) =>
      `${item.marker}${escape(item.seriesName)}: ${show(item.value[1])} %`)].join("<br>") };
    return { option, height: top + panels.length * (high + gap) };
  }

  // Bars of what the subflows of a flow come to, over each other: means of the runs of a bar.
  function stacked(data, choice, theme = LIGHT, width = 860) {
    if (!data.subjects.subflows) return null;
    const group = grouped(data, { ...choice, subject: "subflows", color: "path" });
    const flows = data.subjects.subflows.names.flow.known;
    const bars = group.x.name ? group.x.values : [flows.length === 1 ? flows[0] : "all flows"];
    group.color = { ...group.color, name: "path", values: group.color.values.map((path) => `subflow ${path || 1}`) };
    const at = (rows, bar, c) => rows.filter((row) => group.x.of(row) === bar && group.color.of(row) === c).map((row) => group.values[row]);
    const found = facets(group, 280, width).cells.map((cell) => {
      const rows = rows_of(group, cell);
      return group.color.values.map((_, c) => bars.map((_, bar) => at(rows, bar, c)).map((values) => (values.length ? mean(values) : null)));
    });
    const sums = found.flatMap((cell) => bars.map((_, bar) => cell.reduce((sum, values) => sum + (values[bar] || 0), 0)));
    const x = { type: "category", data: bars, name: group.x.label };
    const { option, cells, height } = frame(group, theme, width, x, { type: "value", ...extent([0, ...sums]), name: title(choice.metric, group.unit) });
    cells.forEach((_, number) => group.color.values.forEach((name, c) => option.series.push({
      type: "bar", stack: `cell ${number}`, name, data: found[number][c], xAxisIndex: number, yAxisIndex: number, barMaxWidth: 48,
      itemStyle: { color: theme.palette[c % theme.palette.length] },
    })));
    option.tooltip = {
      trigger: "item", confine: true,
      formatter: (item) => {
        const sum = sums[Math.floor(item.seriesIndex / group.color.values.length) * bars.length + item.dataIndex];
        return `<b>${escape(item.seriesName)}</b>, ${escape(item.name)}<br>${show(item.value)} ${group.unit}` + (sum > 0 ? `, ${show((item.value / sum) * 100)} % of all` : "");
      },
    };
    return { option, height };
  }

  // What is across and what has facets first, where subflows are over each other.
  function stacks(data, metric) {
    const all = dimensions(data, "subflows").filter((one) => one.is_axis || one.name === "flow");
    const order = all.sort((a, b) => Boolean(b.is_axis) - Boolean(a.is_axis) || b.values.length - a.values.length).map((one) => one.name);
    return { subject: "subflows", metric, x: order[0] || "", column: order[1] || "", row: order[2] || "" };
  }

  // The flows of a record of which there are subflows over time.
  function multipath(record) {
    const ids = (record.series || []).filter((line) => line.kind === "subflow").map((line) => line.id.replace(/\.subflow\d+$/, ""));
    return [...new Set(ids)];
  }

  // The subflows of a flow over time.
  function subflows(record, flow, theme = LIGHT, width = 860) {
    const lines = (record.series || []).filter((line) => line.kind === "subflow" && line.id.startsWith(`${flow}.subflow`));
    const whole = (record.series || []).find((line) => line.kind === "flow" && line.id === flow);
    if (!lines.length) return null;
    const name_of = (line) => (line === whole ? "connection" : line.id.slice(flow.length + 1).replace("subflow", "subflow "));
    const names = [...lines, whole].filter(Boolean).map(name_of);
    const panels = [];
    const add = (key, text, having, more = () => ({})) => {
      const drawn = having.filter((line) => line && (line.values[key] || []).some((value) => value > 0));
      if (!drawn.length) return;
      const [unit_name, scale] = unit(key, drawn.flatMap((line) => line.values[key]));
      const series = drawn.map((line) => ({
        type: "line", name: name_of(line), showSymbol: false, lineStyle: { width: 1.2 }, connectNulls: false,
        itemStyle: { color: color_of(theme, names, name_of(line)) }, ...more(line),
        data: line.values.to_s.map((to, n) => [to, line.values[key][n] === null ? null : line.values[key][n] * scale]),
      }));
      panels.push({ title: text, unit: unit_name === "packets" ? "per interval" : unit_name, min: 0, end: record.duration_s, series });
    };
    add("goodput_bps", "Goodput, subflows over each other", lines, () => ({ stack: "goodput", lineStyle: { width: 0.6 }, areaStyle: { opacity: 0.55 } }));
    for (const [, key, text] of PANELS) {
      if (SUBFLOW.includes(key)) add(key, title_of(text, key), lines, () => ({ sampling: "minmax" }));
    }
    add("reordered_bytes", "Bytes that wait at the receiver for those before them", [whole], () => ({ sampling: "minmax" }));
    if (!panels.length) return null;
    const { option, height } = stack(theme, width, panels, names.filter((name) => panels.some((panel) => panel.series.some((one) => one.name === name))), record.changes);
    option.tooltip = {
      trigger: "axis", confine: true, axisPointer: { type: "line" },
      formatter: (items) => [`${show(items[0].value[0])} s`, ...items.filter((item) => item.value[1] !== null).slice(0, 24).map((item) =>
        `${item.marker}${escape(item.seriesName)}: ${show(item.value[1])} ${panels[item.axisIndex].unit}`)].join("<br>"),
    };
    return { option, height };
  }

  const SUBFLOW = ["rtt_ms", "cwnd_bytes", "in_flight_bytes", "retransmitted_packets"];
  const SUBJECT_ORDER = ["senders", "flows", "groups", "workloads", "links", "hosts", "live", "run"];

  // The subject and the metrics of throughput and delay that there are.
  function main(data, subject = SUBJECT_ORDER.find((name) => data.subjects[name])) {
    if (!subject) return null;
    const all = metrics(data, subject);
    const first = (...names) => names.find((name) => all.includes(name));
    return {
      subject, metric: first("throughput_bps.mean", "goodput_bps") || all[0],
      across: first("rtt_ms.p50", "sojourn_ms.p50", "fct_s", "fct_ms.p50"),
    };
  }

  const KINDS = { box: "boxes", lines: "lines", cdf: "cdf", scatter: "scatter", heat: "heat" };
  // Places as the command line calls them, which are the names of the menus.
  const FLAGS = { x: "x", y: "y", colour: "color", columns: "column", rows: "row" };

  // A choice that was asked for by names, complete as a page's; or what is wrong with it: `unknown`
  // with the names that there are (`known`), or `wrong`.
  function asked(data, asked) {
    const kind = KINDS[asked.figure];
    if (data.runs.index.length < 2) return { wrong: "a figure over axes needs the results of several runs" };
    const first = main(data);
    if (!first) return { wrong: "the results have no metric to draw" };
    const missing = (what, unknown, known) => ({ what, unknown, known: [...new Set(known)] });
    if (asked.of && !data.subjects[asked.of]) return missing("--of", asked.of, Object.keys(data.subjects));
    const subjects = asked.of ? [asked.of] : [first.subject, ...Object.keys(data.subjects)];
    const having = subjects.find((name) => metrics(data, name).includes(asked.metric));
    if (asked.metric && !having) return missing("--metric", asked.metric, subjects.flatMap((name) => metrics(data, name)));
    const subject = having || subjects[0];
    const own = main(data, subject);
    if (asked.across && kind !== "scatter") return { wrong: `--across does nothing in a figure of kind ${asked.figure}` };
    if (asked.across && !metrics(data, subject).includes(asked.across)) return missing("--across", asked.across, metrics(data, subject));
    const across = asked.across || own.across || own.metric;
    let choice = { ...start(data, kind, subject, asked.metric || own.metric), across };
    const all = dimensions(data, subject);
    const named = (text) => {
      const ending = all.filter((one) => one.name.endsWith(`.${text}`));
      return all.find((one) => one.name === text || one.label === text || (one.tells || []).includes(text)) || (ending.length === 1 ? ending[0] : undefined);
    };
    const names = all.map((one) => one.label);
    const only = {};
    for (const [name, text] of asked.only || []) {
      const one = named(name);
      if (!one) return missing("--only", name, names);
      const at = one.values.findIndex((value) => String(value) === text);
      if (at < 0) return missing(`--only ${name}`, text, one.values.map(String));
      only[one.name] = at;
    }
    // What has one value alone needs no place.
    const left = PLACES[kind].map((place) => choice[place]).filter((name) => name && only[name] === undefined);
    PLACES[kind].forEach((place, at) => { choice[place] = left[at] || ""; });
    const given = {};
    for (const [flag, place] of Object.entries(FLAGS)) {
      const text = asked[flag];
      if (text === undefined || text === null) continue;
      if (!PLACES[kind].includes(place)) return { wrong: `--${flag} does nothing in a figure of kind ${asked.figure}` };
      const one = text === "none" ? { name: "" } : named(text);
      if (!one) return missing(`--${flag}`, text, [...names, "none"]);
      if (only[one.name] !== undefined) return { wrong: `--${flag} ${text}: --only leaves one value of it` };
      if (one.name && given[one.name]) return { wrong: `--${flag} ${text}: --${given[one.name]} has it` };
      given[one.name] = flag;
      choice = put(choice, kind, place, one.name);
    }
    if (kind === "heat" && !(choice.x && choice.y)) return { wrong: `a heat map needs two of: ${names.join(", ")}` };
    return { choice: { ...choice, only, kind } };
  }

  // The figure that was asked for, or those that a page shows first, for files.
  function first(data) {
    if (data.asked) {
      const { kind, subject, metric, across } = data.asked;
      const flag = Object.keys(KINDS).find((name) => KINDS[name] === kind);
      const name = [flag, subject, metric, ...(kind === "scatter" ? [across] : [])].join("-").replaceAll(".*", "-within");
      const figure = noted(data, data.asked, kind);
      return figure ? [{ name, figure }] : [];
    }
    const found = [];
    const add = (name, figure) => { if (figure) found.push({ name, figure }); };
    if (data.axes.some((axis) => axis.values.length > 1) || data.runs.index.length > 1) {
      for (const subject of Object.keys(data.subjects)) {
        for (const metric of metrics(data, subject).filter((metric) => MAIN.includes(metric))) {
          add(`box-${subject}-${metric.replace(".*", "-within")}`, noted(data, choice(data, subject, metric), "boxes"));
          add(`cdf-${subject}-${metric}`, metric.endsWith("*") ? null : noted(data, without_x(choice(data, subject, metric)), "cdf"));
        }
      }
      const { subject, metric, across } = main(data) || {};
      if (across) add(`throughput-delay-${subject}`, noted(data, { ...without_x(choice(data, subject, metric)), across }, "scatter"));
      for (const name of subject ? [metric, across].filter(Boolean) : []) {
        const heat = start(data, "heat", subject, name);
        if (heat.y) add(`heat-${subject}-${name}`, noted(data, heat, "heat"));
      }
    }
    const matrix = shares(data);
    if (matrix) add("heat-senders-share", noted(data, matrix, "heat"));
    if (data.subjects.subflows) add("subflows-goodput_bps", stacked(data, stacks(data, "goodput_bps")));
    const over = overlays(data);
    if (over) add("runs-time", overlay(data, { flow: over.flows[0], link: over.links[0] }));
    for (const record of data.records) {
      const run = data.runs.index[record.run];
      add(`run-${run}-time`, time(record));
      for (const flow of multipath(record)) add(`run-${run}-subflows-${flow}`, subflows(record, flow));
      add(`run-${run}-reordering`, reordering(record));
      add(`run-${run}-reorder-density`, density(record));
      for (const flow of Object.keys(record.gradients || {})) add(`run-${run}-gradients-${flow}`, gradients(record, flow));
      for (const flow of Object.keys(record.displacements || {})) add(`run-${run}-displacement-${flow}`, displacement(record, flow));
      for (const link of Object.keys(record.queues)) add(`run-${run}-queue-${link}`, queue(record, link));
      for (const flow of Object.keys(record.sequences)) add(`run-${run}-sequence-${flow}`, sequence(record, flow));
    }
    return found;
  }

  return {
    LIGHT, DARK, SUBJECTS, MAIN, label, unit, title, show, escape, short, dimensions, metrics, choice, without_x, PLACES, pooled, boxes, are_points, lines, expected, named, cdf, heat,
    scatter, shares, start, put, asked, stacked, stacks, time, overlays, overlay, multipath, subflows, gradients, reordering, displacement, density, queue, sequence, main, first, capital,
  };
})();
globalThis.Figures = Figures;
