// The page: menus, charts and tables. What is in a figure, figures.js says.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { escape, show } = Figures;
  const main = document.getElementById("main");
  const charts = [];
  const errors = [];
  window.addEventListener("error", (event) => { errors.push(event.message); report(); });

  // What a test of the page reads.
  function report() {
    document.body.dataset.errors = errors.join("; ");
    document.body.dataset.charts = charts.length;
  }

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function theme() {
    return document.documentElement.dataset.theme === "dark" ? Figures.DARK : Figures.LIGHT;
  }

  // Ends a chart. Many points are drawn over several frames, the next of which may be due already.
  function discard(drawn) {
    if (!drawn) return;
    drawn.clear();
    requestAnimationFrame(() => requestAnimationFrame(() => drawn.dispose()));
  }

  // A chart whose figure is made anew when its choice, the theme or the width changes.
  function chart(parent, figure, name) {
    const box = element("div", { class: "chart", role: "img", "aria-label": name, "data-figure": name });
    parent.append(box);
    let drawn = null;
    const draw = () => {
      const found = figure(theme(), box.clientWidth || 860);
      discard(drawn);
      drawn = null;
      if (!found || !found.option.series.length) {
        box.style.height = "auto";
        box.replaceChildren();
        box.append(element("p", { class: "hint" }, "There is nothing to draw for this choice."));
        box.dataset.marks = 0;
        return;
      }
      box.style.height = `${found.height}px`;
      const place = element("div", { style: "height: 100%" });
      box.replaceChildren(place);
      drawn = echarts.init(place, null, { renderer: "canvas" });
      found.option.toolbox = { right: 0, top: found.option.legend ? 16 : -4, feature: { saveAsImage: { name, pixelRatio: 2, backgroundColor: getComputedStyle(document.documentElement).getPropertyValue("--page") } }, itemSize: 13 };
      drawn.setOption(found.option);
      box.dataset.marks = found.option.series.reduce((sum, series) => sum + (series.data || []).length, 0);
    };
    const handle = { box, draw, get drawn() { return drawn; } };
    charts.push(handle);
    draw();
    report();
    return handle;
  }

  function section(id, title) {
    const made = element("section", { id }, element("h2", {}, title));
    main.append(made);
    document.getElementById("nav").append(element("a", { href: `#${id}` }, title));
    return made;
  }

  function menu(text, options, value, change) {
    const list = element("select", { "aria-label": text, onchange: (event) => change(event.target.value) });
    for (const [key, name] of options) list.append(element("option", key === value ? { value: key, selected: "" } : { value: key }, name));
    return element("label", {}, text, list);
  }

  const KINDS = [["boxes", "Box plots"], ["lines", "Lines"], ["cdf", "CDFs"], ["scatter", "Throughput and delay"], ["heat", "Heat map"]];

  function sweep() {
    const axes = data.axes.filter((axis) => axis.values.length > 1);
    const start = Figures.main(data);
    if (!start || (data.runs.index.length < 2)) return;
    const made = section("figures", "Figures");
    const kinds = KINDS.filter(([kind]) => kind !== "heat" || axes.length > 1);
    // Where no point has several runs, boxes are of what was measured within each.
    const within = start.metric.replace(/[^.]*$/, "*");
    const once = data.runs.repetition.every((repetition) => repetition === 0);
    const metric = once && Figures.metrics(data, start.subject).includes(within) ? within : start.metric;
    const matrix = Figures.shares(data);
    const state = data.asked ? { ...data.asked, chosen: true } : matrix ? { kind: "heat", ...matrix } : { kind: "boxes", ...Figures.choice(data, start.subject, metric), across: start.across };
    const tabs = element("div", { class: "tabs", role: "group" });
    const menus = element("div", { class: "menus" });
    const hint = element("p", { class: "hint" });
    made.append(tabs, menus, hint);
    const one = chart(made, (colors, width) => Figures[state.kind](data, state, colors, width), "figure");

    function update() {
      tabs.replaceChildren(...kinds.map(([kind, name]) => element("button", {
        type: "button", "aria-pressed": String(kind === state.kind), "data-kind": kind,
        onclick: () => {
          state.kind = kind;
          // As long as nobody has chosen, each kind of figure tells apart what it can.
          if (!state.chosen) Object.assign(state, Figures.start(data, kind, state.subject, state.metric));
          update();
        },
      }, name)));
      const dimensions = Figures.dimensions(data, state.subject);
      const named = (none) => (none ? [["", none]] : []).concat(dimensions.map((one) => [one.name, one.label]));
      const metrics = Figures.metrics(data, state.subject).map((name) => [name, Figures.label(name)]);
      const set = (key) => (value) => { state[key] = value; state.chosen = true; update(); };
      const put = (key) => (value) => { Object.assign(state, Figures.put(state, state.kind, key, value), { chosen: true }); update(); };
      const all = [
        menu("of", Object.keys(data.subjects).map((name) => [name, Figures.SUBJECTS[name] || name]), state.subject, (subject) => {
          const metric = Figures.metrics(data, subject)[0];
          Object.assign(state, Figures.start(data, state.kind, subject, metric), { across: Figures.metrics(data, subject).find((name) => /^(rtt|sojourn|fct)/.test(name)) || metric });
          update();
        }),
        menu(state.kind === "scatter" ? "up" : "metric", metrics, state.metric, set("metric")),
      ];
      if (state.kind === "scatter") all.push(menu("across", metrics, state.across, set("across")));
      if (state.kind === "heat") {
        const other = dimensions.map((one) => one.name).find((name) => name !== state.x);
        if (!state.y || state.y === state.x) state.y = other;
        // An axis has one place.
        for (const key of ["column", "row"]) if ([state.x, state.y].includes(state[key])) state[key] = "";
      }
      const across = ["boxes", "lines", "heat"].includes(state.kind);
      if (across) all.push(menu("x axis", named(state.kind === "heat" ? "" : "none"), state.x, put("x")));
      if (state.kind === "heat") all.push(menu("y axis", named(""), state.y, put("y")));
      else all.push(menu("colour", named("none"), state.color, put("color")));
      all.push(menu("columns", named("none"), state.column, put("column")), menu("rows", named("none"), state.row, put("row")));
      // Axes that are not drawn: all of their values, or one.
      const drawn = Figures.PLACES[state.kind];
      state.only = Object.fromEntries(Object.entries(state.only || {}).filter(([name]) =>
        dimensions.some((one) => one.name === name) && !drawn.some((key) => state[key] === name)));
      for (const one of dimensions.filter((one) => !drawn.some((key) => state[key] === one.name) && one.values.length <= 200)) {
        const options = [["", "all"]].concat(one.values.map((value, at) => [String(at), String(value)]));
        const chosen = state.only[one.name];
        all.push(menu(`only ${one.label}`, options, chosen === undefined ? "" : String(chosen), (value) => {
          if (value === "") delete state.only[one.name];
          else state.only[one.name] = Number(value);
          update();
        }));
      }
      menus.replaceChildren(...all);
      hint.textContent = {
        boxes: state.kind === "boxes" && Figures.are_points(data, state)
          ? "A point for each row."
          : state.metric.endsWith("*")
          ? "Boxes from the quartiles, whiskers from the 5th to the 95th percentile within runs, each the mean over the runs of the box."
          : "Boxes have the quartiles and the median of runs, whiskers reach from the smallest to the largest.",
        lines: state.metric.endsWith("*")
          ? "Medians within runs, and quartiles as bars, each the mean over the runs of the point."
          : "Medians of the runs of a point, and their quartiles as bars.",
        cdf: "The fraction of values that are at most so large.",
        scatter: "A point for each row; crosses are means, and ellipses contain one standard deviation.",
        heat: "Means of the runs of each cell.",
      }[state.kind] + " " + Figures.pooled(data, state, state.kind);
      one.draw();
    }
    update();
  }

  // Subflows over each other.
  function subflows() {
    if (!data.subjects.subflows) return;
    const made = section("subflows", "Subflows");
    const names = Figures.metrics(data, "subflows").filter((name) => !name.endsWith("*"));
    const state = Figures.stacks(data, names.includes("goodput_bps") ? "goodput_bps" : names[0]);
    const menus = element("div", { class: "menus" });
    const runs = data.runs.index.length;
    made.append(menus, element("p", { class: "hint" }, `What the subflows of each flow come to, over each other${runs > 1 ? ": means of the runs of each bar" : ""}. What was sent on several subflows counts for each.`));
    const one = chart(made, (colors, width) => Figures.stacked(data, state, colors, width), "subflows");
    const dimensions = Figures.dimensions(data, "subflows").filter((one) => one.is_axis || one.name === "flow");
    const named = [["", "none"]].concat(dimensions.map((one) => [one.name, one.label]));
    const set = (key) => (value) => { state[key] = value; one.draw(); };
    menus.append(menu("metric", names.map((name) => [name, Figures.label(name)]), state.metric, set("metric")));
    if (dimensions.length) menus.append(menu("x axis", named, state.x, set("x")));
    if (dimensions.length > 1) menus.append(menu("columns", named, state.column, set("column")), menu("rows", named, state.row, set("row")));
  }

  function table() {
    const subjects = Object.entries(data.statistics).filter(([, found]) => found.runs.length);
    if (!subjects.length) return;
    const made = section("table", "Table");
    const start = Figures.main(data) || { subject: subjects[0][0] };
    const state = { subject: start.subject, metric: start.metric, filter: "", all: false };
    const menus = element("div", { class: "menus" });
    const place = element("div", { class: "scroll", tabindex: "0" });
    const more = element("p", { class: "hint" });
    const hint = element("p", { class: "hint" }, "95 % confidence intervals of the mean, by Student's t and by the bootstrap (BCa); n is the number of repetitions.");
    made.append(menus, hint, place, more);

    function update(keep) {
      const found = data.statistics[state.subject];
      const names = Figures.metrics(data, state.subject).filter((name) => found.metrics[name]);
      if (!names.includes(state.metric)) state.metric = names[0];
      if (!keep) {
        menus.replaceChildren(
          menu("of", subjects.map(([name]) => [name, Figures.SUBJECTS[name] || name]), state.subject, (value) => { state.subject = value; update(); }),
          menu("metric", names.map((name) => [name, Figures.label(name)]), state.metric, (value) => { state.metric = value; update(); }),
          element("label", {}, "rows with", element("input", { type: "search", placeholder: "any text", oninput: (event) => { state.filter = event.target.value; update(true); } })),
        );
      }
      const columns = found.metrics[state.metric] || [[], [], [], [], [], [], [], []];
      const [unit, scale] = Figures.unit(state.metric, columns[1]);
      const axes = data.axes.filter((axis) => axis.values.length > 1);
      const paths = data.axes.map((axis) => axis.name);
      const ids = data.subjects[state.subject].names.id;
      const heads = [...axes.map((axis) => Figures.short(axis.name, paths)), ...(ids ? ["id"] : [])];
      // A single run has one value, and nothing that could vary.
      const repeated = columns[0].some((count) => count > 1);
      const numbers = repeated ? ["n", "mean", "median", "s", "t: from", "to", "bootstrap: from", "to"] : ["value"];
      hint.hidden = !repeated;
      const rows = [];
      found.runs.forEach((run, row) => {
        if (!columns[0][row]) return;
        const texts = axes.map((axis) => axis.values[axis.rows[run]] ?? "").concat(ids ? [ids.known[found.ids[row]]] : []);
        if (state.filter && !texts.join(" ").toLowerCase().includes(state.filter.toLowerCase())) return;
        const shown = columns.map((column, place) => (place ? (column[row] === null ? "–" : show(column[row] * scale)) : column[row]));
        rows.push([texts, repeated ? shown : [shown[1]]]);
      });
      const head = element("tr", {}, ...heads.map((text) => element("th", { class: "name" }, text)), ...numbers.map((text) => element("th", {}, text)));
      const body = rows.slice(0, state.all ? rows.length : 500).map(([texts, values]) => element("tr", {},
        ...texts.map((text) => element("td", { class: "name" }, String(text))), ...values.map((value) => element("td", {}, String(value)))));
      place.replaceChildren(element("table", {}, element("caption", {}, Figures.title(state.metric, unit)), element("thead", {}, head), element("tbody", {}, ...body)));
      more.replaceChildren();
      if (rows.length > body.length) {
        more.append(`The first 500 of ${rows.length} rows. `, element("button", { type: "button", onclick: () => { state.all = true; update(true); } }, "Show all"));
      }
    }
    update();
  }

  // How many comparisons there were, as the terminal counts them; files of earlier versions do not say.
  function counted(all) {
    const sum = (key) => all.reduce((sum, one) => sum + one[key], 0);
    const missed = all.filter((one) => one.met === false).length;
    const rows = `${all.length} row${all.length === 1 ? "" : "s"}, one for each expectation and point`;
    if (all.some((one) => one.checks === undefined)) return `${rows}: ${missed ? `${missed} missed` : "all met"}.`;
    const [checks, misses] = [sum("checks"), sum("misses")];
    return `${checks} checked, ${misses ? `${misses} missed` : "all met"}. The table has ${rows}.`;
  }

  function expectations() {
    if (!data.expectations.length) return;
    // A point with one run has found its value.
    const all = data.expectations.map((one) => ({ ...one, found: one.found ?? ((one.values || []).length === 1 ? one.values[0] : null) }));
    const made = section("expectations", "Expectations");
    const keys = ["source", "published", "met", "metric", "params", "expected", "found", "runs_met", "runs", "reason"].filter((key) =>
      all.some((one) => one[key] !== null && one[key] !== undefined));
    made.append(element("p", {}, counted(all)));
    const drawn = Figures.expected(data);
    if (drawn.length) {
      const state = { number: 0 };
      const menus = element("div", { class: "menus" });
      const hint = element("p", { class: "hint" });
      const tell = () => { hint.textContent = `${drawn[state.number].name}. Medians of the runs of each point, and their quartiles as bars; the bounds are dashed.`; };
      made.append(menus, hint);
      tell();
      const one = chart(made, (colors, width) => Figures.lines(drawn[state.number].data, drawn[state.number].choice, colors, width), "expected");
      menus.append(menu("expectation", drawn.map(({ name }, number) => [String(number), name]), "0", (value) => { state.number = Number(value); tell(); one.draw(); }));
    }
    const text = (value) => (value === undefined || value === null ? "" : typeof value === "object" ? Object.entries(value).map(([key, value]) => `${key} ${value}`).join(", ") : typeof value === "number" ? show(value) : String(value));
    const rows = all.map((one) => element("tr", {}, ...keys.map((key) => {
      const verdict = typeof one[key] === "boolean";
      return element("td", { class: verdict ? (one[key] ? "name met" : "name missed") : "name" }, verdict ? (one[key] ? "met" : "missed") : text(key === "params" ? Figures.named(one) : one[key]));
    })));
    made.append(element("div", { class: "scroll", tabindex: "0" }, element("table", {},
      element("thead", {}, element("tr", {}, ...keys.map((key) => element("th", { class: "name" }, key)))), element("tbody", {}, ...rows))));
  }

  function runs() {
    if (!data.records.length) return;
    const made = section("run", data.records.length > 1 ? "Runs over time" : "Over time");
    const state = { record: 0, link: "", flow: "", whole: "", gradual: "", displaced: "" };
    const menus = element("div", { class: "menus" });
    const hint = element("p", { class: "hint" }, "Drag below a figure, or turn the wheel with Ctrl, to zoom: all of its panels follow. Names switch lines off.");
    const place = element("div");
    made.append(menus, hint, place);
    function update() {
      const record = data.records[state.record];
      const links = Object.keys(record.queues);
      const flows = Object.keys(record.sequences);
      const several = Figures.multipath(record);
      if (!several.includes(state.whole)) state.whole = several[0];
      const gradual = Object.keys(record.gradients || {});
      if (!gradual.includes(state.gradual)) state.gradual = gradual[0];
      const displaced = Object.keys(record.displacements || {});
      if (!displaced.includes(state.displaced)) state.displaced = displaced[0];
      if (!links.includes(state.link)) state.link = links[0];
      if (!flows.includes(state.flow)) state.flow = flows[0];
      const set = (key) => (value) => { state[key] = value; update(); };
      const all = [];
      if (data.records.length > 1) all.push(menu("run", data.records.map((one, number) => [String(number), one.name]), String(state.record), (value) => { state.record = Number(value); update(); }));
      if (several.length > 1) all.push(menu("subflows of", several.map((flow) => [flow, flow]), state.whole, set("whole")));
      if (gradual.length > 1) all.push(menu("gradients of", gradual.map((flow) => [flow, flow]), state.gradual, set("gradual")));
      if (displaced.length > 1) all.push(menu("displacements of", displaced.map((flow) => [flow, flow]), state.displaced, set("displaced")));
      if (links.length > 1) all.push(menu("queue", links.map((link) => [link, link]), state.link, set("link")));
      if (flows.length > 1) all.push(menu("sequence numbers of", flows.map((flow) => [flow, flow]), state.flow, set("flow")));
      menus.replaceChildren(...all);
      menus.hidden = !all.length;
      menus.style.display = all.length ? "" : "none";
      for (let at = charts.length - 1; at >= 0; at--) {
        if (place.contains(charts[at].box)) {
          discard(charts[at].drawn);
          charts.splice(at, 1);
        }
      }
      place.replaceChildren();
      if (record.series) chart(place, (colors, width) => Figures.time(record, colors, width), "time");
      if (state.whole) {
        place.append(element("h3", {}, `Subflows of ${state.whole}`));
        chart(place, (colors, width) => Figures.subflows(record, state.whole, colors, width), "subflows over time");
      }
      if (state.gradual) {
        place.append(element("h3", {}, `Delay gradients of ${state.gradual}`), thinned([record.gradients[state.gradual]]));
        chart(place, (colors, width) => Figures.gradients(record, state.gradual, colors, width), "gradients");
      }
      if (record.reordering) {
        place.append(element("h3", {}, "Reordering"));
        chart(place, (colors, width) => Figures.reordering(record, colors, width), "reordering");
        chart(place, (colors, width) => Figures.density(record, colors, width), "density");
      }
      if (state.displaced) {
        place.append(element("h3", {}, `Displacement of the packets of ${state.displaced}`), thinned([record.displacements[state.displaced]]));
        chart(place, (colors, width) => Figures.displacement(record, state.displaced, colors, width), "displacement");
      }
      if (state.link) {
        place.append(element("h3", {}, `Every decision of the queue of ${state.link}`), thinned(Object.values(record.queues[state.link])));
        chart(place, (colors, width) => Figures.queue(record, state.link, colors, width), "queue");
      }
      if (state.flow) {
        place.append(element("h3", {}, `Sequence numbers of ${state.flow}`), thinned(Object.values(record.sequences[state.flow])));
        chart(place, (colors, width) => Figures.sequence(record, state.flow, colors, width), "sequence");
      }
    }
    update();
  }

  // A flow and a link of several runs over each other.
  function overlay() {
    const found = Figures.overlays(data);
    if (!found) return;
    const made = section("overlay", "Runs over each other");
    const state = { flow: found.flows[0], link: found.links[0] };
    const menus = element("div", { class: "menus" });
    made.append(menus, element("p", { class: "hint" }, "The same flow and the same link in each run that is shown. Names switch runs off."));
    const one = chart(made, (colors, width) => Figures.overlay(data, state, colors, width), "overlay");
    const choose = (key) => (value) => { state[key] = value; one.draw(); };
    if (found.flows.length > 1) menus.append(menu("flow", found.flows.map((flow) => [flow, flow]), state.flow, choose("flow")));
    if (found.links.length > 1) menus.append(menu("link", found.links.map((link) => [link, link]), state.link, choose("link")));
  }

  function thinned(kinds) {
    const shown = kinds.some((kind) => kind.of > kind.points.length);
    return element("p", { class: "hint" }, shown ? "There are more points than are shown: every second, fourth, ... is left out." : "");
  }

  function scenario() {
    const made = section("scenario", "Scenario");
    for (const output of data.outputs) {
      if (data.outputs.length > 1) made.append(element("h3", {}, output.dir));
      made.append(element("details", {}, element("summary", {}, "Every key, with its value or default"), element("pre", {}, output.scenario || "")));
    }
  }

  function about() {
    document.getElementById("title").textContent = data.title;
    const runs = data.runs.index.length;
    const partial = data.outputs.some((output) => output.partial);
    const versions = [...new Set(data.outputs.map((output) => output.version))].join(", ");
    document.getElementById("about").textContent = `${runs} run${runs === 1 ? "" : "s"}, seed ${[...new Set(data.outputs.map((output) => output.seed))].join(", ")}, ackclock ${versions}.` +
      (partial ? " Partial results: not all runs had finished." : "");
    for (const note of data.notes) main.append(element("p", { class: "note" }, note));
  }

  function recolor() {
    for (const one of charts) one.draw();
    report();
  }

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
  document.getElementById("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    recolor();
  });
  let before = null;
  window.addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; document.documentElement.dataset.theme = "light"; recolor(); });
  window.addEventListener("afterprint", () => { document.documentElement.dataset.theme = before; recolor(); });
  let width = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (window.innerWidth !== width) { width = window.innerWidth; recolor(); } }, 150);
  });

  try {
    about();
    sweep();
    subflows();
    overlay();
    runs();
    table();
    expectations();
    scenario();
  } catch (error) {
    errors.push(String(error && error.stack || error));
  }
  globalThis.Page = { data, charts, errors };
  report();
  document.body.dataset.ready = "yes";
})();
