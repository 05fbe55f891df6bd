"use strict";
// Names are untrusted: all text is inserted as text nodes, and tooltips are drawn, not markup.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 132, height: 26, column: 148, layer: 46 };
const find = (selector) => document.querySelector(selector);
const color = (name) => `var(--${name})`; // charts follow the scheme, and a printer, as CSS does
const AXIS_LABEL = { color: color("quiet"), fontSize: 12, hideOverlap: true };
const plots = new Map();
let build = data.builds[0];
let chosen = null;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A cell may have a number to sort by and a text to show.
const told = (value, text, kind = "") => ({ value, text, kind });
const raw = (cell) => (cell?.text === undefined ? cell : cell.value);
const isNumber = (cell) => typeof raw(cell) === "number" && !cell.kind;

const figure = (value) => {
  if (value?.text !== undefined) return value.text;
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
};

// -- tables ---------------------------------------------------------------------------------

// columns: [title, row => value]; with `open`, rows can be opened; `address` is the link of a row.
function table(into, columns, rows, { open, key, address, search = rows.length > 8, name = "rows" } = {}) {
  const body = element("tbody");
  const heads = columns.map(([title], index) => {
    const button = element("button", { type: "button" }, title);
    const head = element("th", { scope: "col", "aria-sort": "none" }, button);
    button.addEventListener("click", () => sort(index));
    return head;
  });
  let shown = rows.map((row) => ({ row, cells: columns.map(([, of]) => of(row)) }));
  heads.forEach((head, index) => head.classList.toggle("number", shown.some(({ cells }) => isNumber(cells[index]))));
  const count = element("span", { class: "why", role: "status" });
  const input = element("input", { type: "search", "aria-label": `search ${name}`, placeholder: "search" });

  function sort(index) {
    const up = heads[index].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== index ? "none" : up ? "ascending" : "descending"));
    const missing = (value) => value === null || value === undefined;
    shown.sort(({ cells: a }, { cells: b }) => {
      const [x, y] = [raw(a[index]), raw(b[index])];
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      const order = typeof x === "number" && typeof y === "number" ? x - y
        : String(x).localeCompare(String(y), "en", { numeric: true });
      return up ? order : -order;
    });
    fill();
  }

  function fill() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hit = shown.filter(({ cells }) => {
      const text = cells.map(figure).join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    body.replaceChildren(...hit.map(({ row, cells }) => {
      const tr = element("tr", { ...(open ? { tabindex: "0" } : {}), ...(key ? { "data-key": key(row) } : {}) });
      tr.append(...cells.map((cell, index) => {
        const text = figure(cell);
        const label = columns[index][0];
        return element("td", { title: text, class: isNumber(cell) ? "number" : cell?.kind ?? "", "data-label": label },
          address && index === 0 ? element("a", { href: address(row), tabindex: "-1" }, text) : text);
      }));
      if (open) {
        tr.addEventListener("click", () => open(row));
        tr.addEventListener("keydown", (event) => { if (event.key === "Enter") open(row); });
      }
      return tr;
    }));
    mark();
    count.textContent = words.length ? ` ${hit.length} of ${rows.length}` : "";
  }

  input.addEventListener("input", fill);
  fill();
  const whole = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body);
  into.replaceChildren(...(search ? [element("div", { class: "search" }, input, count)] : []),
    element("div", { class: rows.length > 12 ? "scroll long" : "scroll", tabindex: "0", role: "region", "aria-label": name }, whole));
}

// The rows of the selected build and node.
function mark() {
  for (const tr of document.querySelectorAll("tr[data-key]")) {
    tr.setAttribute("aria-current", String([build.name, chosen].includes(tr.dataset.key)));
  }
}

// -- links to nodes -------------------------------------------------------------------------

const addressOf = (node) => `#${new URLSearchParams({ build: build.name, node })}`;
const nodeLink = (name) => element("a", { href: addressOf(name) }, name);

// The text with a link where it names a node of the build. The longest name wins.
function linked(text) {
  const names = build.graph.nodes.map((node) => node.name).filter((name) => text.includes(name));
  if (!names.length) return [text];
  const escaped = names.sort((a, b) => b.length - a.length).map((name) => name.replace(/[^\p{L}\p{N}_ ]/gu, "\\$&"));
  const parts = text.split(new RegExp(`(?<![\\w./-])(${escaped.join("|")})(?![\\w/-]|\\.\\w)`));
  return parts.map((part, index) => (index % 2 ? nodeLink(part) : part));
}

// Opens the build and the node that the address of the page names.
function follow() {
  const named = new URLSearchParams(location.hash.slice(1));
  const target = data.builds.find((each) => each.name === named.get("build"));
  if (!target) return;
  if (target !== build) { find("#build").value = target.name; show(target); }
  if (!build.graph.nodes.some((node) => node.name === named.get("node"))) return;
  select(named.get("node"));
  find("#tensor").scrollIntoView();
}

// -- charts ---------------------------------------------------------------------------------

function chart(id, none, option) {
  const into = document.getElementById(id);
  plots.get(id)?.dispose();
  plots.delete(id);
  into.toggleAttribute("data-none", Boolean(none));
  if (none) { into.setAttribute("data-none", none); return; }
  const { height = 300, ...shown } = option;
  into.style.height = `${height}px`;
  const plot = echarts.init(into, null, { renderer: "svg", height });
  const axis = (given) => ({
    axisLabel: AXIS_LABEL, axisLine: { lineStyle: { color: color("line") } },
    splitLine: { lineStyle: { color: color("line") } }, nameTextStyle: { color: color("quiet") }, ...given,
  });
  plot.setOption({
    animation: false, aria: { enabled: true, label: { data: { maxCount: 5 } } },
    color: [color("npu"), color("cpu"), color("other")],
    textStyle: { fontFamily: "system-ui, sans-serif" },
    grid: { left: 70, right: 20, top: 50, bottom: shown.dataZoom ? 70 : 40 },
    legend: { show: shown.series.length > 1, top: 22, textStyle: { color: color("ink") } },
    ...shown,
    series: shown.series.map((each) => ({ ...each, emphasis: { disabled: true } })),
    title: { ...shown.title, textStyle: { color: color("ink"), fontSize: 13, width: into.clientWidth - 20, overflow: "truncate" } },
    tooltip: { trigger: "axis", renderMode: "richText", confine: true, backgroundColor: color("paper"),
      borderColor: color("line"), textStyle: { color: color("ink") }, ...shown.tooltip },
    xAxis: axis(shown.xAxis), yAxis: axis(shown.yAxis),
  });
  plots.set(id, plot);
  return plot;
}

const figured = () => build.graph.nodes.filter((node) => typeof node.quantized === "number");
// The head of a long name and more of its tail, which tells nodes apart.
const short = (name, most = 28) => (name.length <= most ? name
  : `${name.slice(0, Math.floor(most / 3))}…${name.slice(Math.floor(most / 3) + 1 - most)}`);
const zoom = (count) => (count > 60
  ? [{ type: "slider", height: 18, bottom: 8, textStyle: { color: color("quiet") } }, { type: "inside", zoomOnMouseWheel: "ctrl" }]
  : undefined);
const loss = (cosine) => Number((1 - cosine).toPrecision(4));

function errors() {
  const nodes = figured();
  const names = nodes.map((node) => node.name);
  const width = find("#own").clientWidth;
  const most = Math.min(24, Math.floor(width / 24)); // characters: two names stand side by side on a phone
  const xAxis = { type: "category", data: names, axisLabel: { ...AXIS_LABEL, padding: [0, 6], alignMinLabel: "left",
    alignMaxLabel: "right", formatter: (name) => short(name, most) } };
  const none = nodes.length && build.compared ? null : "no samples were compared";
  const line = (name, of) => ({ name, type: "line", symbol: "circle", symbolSize: 4, data: nodes.map(of), connectNulls: true });
  const clickable = (plot) => plot?.on("click", ({ dataIndex }) => choose(nodes[dataIndex].name));
  clickable(chart("accumulated", none, {
    title: { text: "Accumulated error, 1 - cosine" }, xAxis, yAxis: { type: "value" }, dataZoom: zoom(nodes.length),
    series: [line("calibrated", (n) => loss(n.calibrated)), line("quantized", (n) => loss(n.quantized))],
  }));
  const lost = nodes.some((node) => typeof node.lost === "number");
  clickable(chart("own", lost ? none : "there are no figures per node", {
    title: { text: "Error added by each node" }, xAxis, yAxis: { type: "value" }, dataZoom: zoom(nodes.length),
    series: [{ name: "own", type: "bar", data: nodes.map((n) => n.lost) }],
  }));
  const worst = build.losses.filter((each) => each.lost > 0).slice(0, 20).reverse();
  const room = Math.min(230, width / 2);
  chart("ranking", worst.length ? null : "no node adds an error", {
    title: { text: "Most sensitive nodes" }, height: 80 + 22 * worst.length,
    grid: { left: room, right: 20, top: 36, bottom: 40 },
    xAxis: { type: "value" },
    yAxis: { type: "category", data: worst.map((each) => each.node), axisLabel: { ...AXIS_LABEL, interval: 0, formatter: (name) => short(name, Math.floor(room / 7.5)) } },
    series: [{ name: "own error", type: "bar", data: worst.map((each) => each.lost) }],
  })?.on("click", ({ dataIndex }) => choose(worst[dataIndex].node));
}

function tensor() {
  const node = build.graph.nodes.find((each) => each.name === chosen);
  const name = node?.tensor;
  const found = build.distributions[name];
  if (!found) {
    chart("distribution", node ? "there are no statistics for this node: it only moves data" : "no node");
  } else {
    const width = (found.high - found.low) / found.counts.length;
    const span = [Math.min(found.low, ...(found.range ?? [])), Math.max(found.high, ...(found.range ?? []))];
    // A label at the border of the chart stays inside; of two that are close one stands higher.
    const share = (x) => (x - span[0]) / (span[1] - span[0]);
    const limits = (found.range ?? []).map((x, i, [low, high]) => ({ xAxis: x, label: {
      align: share(x) < 0.15 ? "left" : share(x) > 0.85 ? "right" : "center",
      distance: i && share(high) - share(low) < 0.4 ? 18 : 4 } }));
    chart("distribution", null, {
      title: { text: `${short(node.name)}: number of values, calibrated range` },
      xAxis: { type: "value", min: span[0], max: span[1] }, yAxis: { type: "log", min: 1 },
      tooltip: { trigger: "item" },
      series: [{
        name: "values", type: "bar", barWidth: "98%", barGap: "-100%",
        data: found.counts.map((count, i) => [found.low + (i + 0.5) * width, count || null]),
        markLine: { symbol: "none", animation: false, lineStyle: { color: color("cpu"), type: "solid" },
          label: { color: color("ink"), formatter: ({ value }) => figure(value) }, data: limits },
      }],
    });
  }
  boxes("activations", "Values by channel: minimum to maximum", build.channels[name]);
  boxes("weights", "Weights by output channel", build.weights[chosen]);
}

function boxes(id, text, found) {
  if (!found) { chart(id, id === "weights" ? "this node has no weights" : "this tensor has no channels"); return; }
  const whole = found.boxes.map((box) => (box.length === 5 ? box : [box[0], box[0], (box[0] + box[1]) / 2, box[1], box[1]]));
  const some = found.count > found.numbers.length ? `, the widest ${found.numbers.length} of ${found.count}` : "";
  chart(id, null, {
    title: { text: text + some }, tooltip: { trigger: "item" },
    xAxis: { type: "category", data: found.numbers.map(String) }, yAxis: { type: "value", scale: true },
    series: [{ name: "channel", type: "boxplot", data: whole,
      itemStyle: { color: "transparent", borderColor: color("npu") } }],
  });
}

// -- the graph ------------------------------------------------------------------------------

const unit = (node) => (node.on === null ? "other" : node.on === "CPU" ? "cpu" : "npu");
const spot = ([x, layer]) => [x * BOX.column + BOX.width / 2, layer * BOX.layer + BOX.height / 2];

function graph() {
  const { nodes, edges } = build.graph;
  const into = find("#graph .drawing");
  const wide = Math.max(...nodes.map((n) => n.place[0]), 0) * BOX.column + BOX.width;
  const high = Math.max(...nodes.map((n) => n.place[1]), 0) * BOX.layer + BOX.height;
  const all = [-10, -10, wide + 20, high + 20];
  const svg = drawn("svg", { role: "group", "aria-label": "graph of the model", tabindex: "0" });
  for (const [from, to, bends] of edges) {
    const points = [nodes[from].place, ...bends, nodes[to].place].map(spot);
    points[0][1] += BOX.height / 2;
    points.at(-1)[1] -= BOX.height / 2;
    let path = `M${points[0]}`;
    for (let i = 1; i < points.length; i++) {
      const middle = (points[i - 1][1] + points[i][1]) / 2;
      path += `C${points[i - 1][0]},${middle} ${points[i][0]},${middle} ${points[i]}`;
    }
    svg.append(drawn("path", { d: path }));
  }
  const most = Math.max(...nodes.map((n) => n.lost ?? 0), 1e-12);
  nodes.forEach((node) => {
    const [x, y] = [node.place[0] * BOX.column, node.place[1] * BOX.layer];
    const words = [node.name, node.type, node.shape, `on ${node.on ?? "no unit"}`,
      node.quantized === undefined ? "" : `cosine ${figure(node.quantized)}`,
      typeof node.lost === "number" ? `loses ${figure(node.lost)}` : ""].filter(Boolean);
    const label = node.type.length > 19 ? `${node.type.slice(0, 18)}…` : node.type;
    const box = drawn("g", { class: "box", tabindex: "-1", role: "button", "data-node": node.name, "aria-label": words.join(", ") },
      drawn("title", {}, words.join("\n")),
      drawn("rect", { x, y, width: BOX.width, height: BOX.height, rx: 4, fill: `var(--${unit(node)})` }),
      drawn("rect", { x, y: y + BOX.height - 4, width: (BOX.width * (node.lost ?? 0)) / most, height: 4, fill: "var(--bad)", stroke: "none" }),
      drawn("text", { x: x + 6, y: y + 16 }, label));
    box.addEventListener("click", () => choose(node.name));
    svg.append(box);
  });
  into.replaceChildren(svg);
  steer(svg, all, nodes);
  const units = new Map(nodes.map((node) => [unit(node), node.on ?? "no float output"]));
  find("#graph .legend").replaceChildren(...[...units].map(([kind, text]) =>
    element("span", {}, element("i", { style: `background: var(--${kind})` }), text)));
}

// Zoom and move by wheel, pointer and keys.
function steer(svg, all, nodes) {
  const ratio = () => svg.clientHeight / Math.max(svg.clientWidth, 1);
  const first = svg.clientWidth || 1000; // a unit is a pixel
  const fits = Math.max(all[2] / first, all[3] / (svg.clientHeight || 480));
  let view = fits < 1.6 ? [...all] : [all[0] + (all[2] - first) / 2, all[1], first, first * (ratio() || 0.5)];
  const show = () => svg.setAttribute("viewBox", view.join(" "));
  const scale = (by, x = view[0] + view[2] / 2, y = view[1] + view[3] / 2) => {
    view = [x - (x - view[0]) * by, y - (y - view[1]) * by, view[2] * by, view[3] * by];
    show();
  };
  const move = (x, y) => { view[0] += x * view[2]; view[1] += y * view[3]; show(); };
  const at = (event) => {
    const frame = svg.getBoundingClientRect();
    return [view[0] + ((event.clientX - frame.left) / frame.width) * view[2],
      view[1] + ((event.clientY - frame.top) / frame.height) * view[3]];
  };
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    scale(event.deltaY > 0 ? 1.2 : 1 / 1.2, ...at(event));
  }, { passive: false });
  let held = null;
  svg.addEventListener("pointerdown", (event) => { held = at(event); });
  svg.addEventListener("pointermove", (event) => {
    if (!held || !event.buttons) return;
    const [x, y] = at(event);
    view[0] += held[0] - x; view[1] += held[1] - y;
    show();
  });
  const keys = {
    "+": () => scale(1 / 1.3), "=": () => scale(1 / 1.3), "-": () => scale(1.3), 0: () => { view = [...all]; show(); },
    ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0), ArrowUp: () => move(0, -0.1), ArrowDown: () => move(0, 0.1),
    Enter: () => { const box = document.activeElement.closest(".box"); if (box) choose(box.dataset.node); },
    n: () => step(1), p: () => step(-1),
  };
  const step = (by) => {
    const index = nodes.findIndex((node) => node.name === document.activeElement.dataset?.node);
    const next = nodes[Math.min(Math.max(index + by, 0), nodes.length - 1)];
    svg.querySelector(`[data-node="${CSS.escape(next.name)}"]`)?.focus({ preventScroll: true });
    svg.dispatchEvent(new CustomEvent("center", { detail: next }));
  };
  svg.addEventListener("keydown", (event) => {
    if (!Object.hasOwn(keys, event.key) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  svg.addEventListener("center", ({ detail }) => {
    const [x, y] = spot(detail.place);
    if (fits < 1.6 && x > view[0] && x < view[0] + view[2] && y > view[1] && y < view[1] + view[3]) return;
    view[0] = x - view[2] / 2; view[1] = y - view[3] / 2;
    show();
  });
  show();
}

function choose(name) {
  select(name);
  history.replaceState(null, "", addressOf(name));
}

function select(name) {
  chosen = name;
  find("#node").value = name;
  tensor();
  for (const box of document.querySelectorAll("#graph .box")) box.classList.toggle("chosen", box.dataset.node === name);
  const node = build.graph.nodes.find((each) => each.name === name);
  if (node) find("#graph svg").dispatchEvent(new CustomEvent("center", { detail: node }));
  mark();
}

// -- the rest -------------------------------------------------------------------------------

const worst = (each) => (each.compared && each.outputs.length ? Math.min(...each.outputs.map((o) => o.cosine)) : null);
const ran = (each) => each.outputs.flatMap((o) => (o.compiled ? [o.compiled.cosine] : []));
const worstRun = (each) => (ran(each).length ? Math.min(...ran(each)) : null);
const value = (row) => (row ? row.by_name[row.metric] : null);
const compiled = (each) => data.provenance.find((made) => made.node === `${each.name}/compiled`);

const unmet = (each) => each.gates.filter((gate) => !gate.met);
const lost = (each) => (each.scores.length > 1 ? value(each.scores[0]) - value(each.scores.at(-1)) : null);
const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const bytes = (count) => (count < 1e6 ? `${(count / 1e3).toPrecision(3)} kB` : `${(count / 1e6).toPrecision(3)} MB`);
const time = (ms) => (ms >= 1 ? `${ms.toPrecision(3)} ms` : ms >= 1e-3 ? `${(ms * 1e3).toPrecision(3)} µs` : `${(ms * 1e6).toPrecision(3)} ns`);
const link = (text, act) => {
  const made = element("button", { type: "button", class: "link" }, text);
  made.addEventListener("click", act);
  return made;
};
const open = (each, section) => {
  find("#build").value = each.name;
  show(each);
  if (section) find(section).scrollIntoView();
};
const least = (of, sign) => data.builds.filter((each) => of(each) !== null)
  .sort((a, b) => sign * (of(a) - of(b)))[0];

function verdict() {
  const asked = data.builds.filter((each) => each.gates.length);
  const failing = asked.filter((each) => unmet(each).length);
  const text = !asked.length ? "This project defines no gates."
    : failing.length ? `${failing.length} of ${many(data.builds.length, "build")} fail their gates.`
      : `All gates are met in ${many(asked.length, "build")}.`;
  const kind = !asked.length ? "" : failing.length ? "unmet" : "met";
  const [far, low] = [least(lost, -1), least(worst, 1)];
  const facts = [far && `${far.scores[0].metric} drops by at most ${figure(lost(far))} (${far.name})`,
    low && `the worst output has a cosine of ${figure(worst(low))} (${low.name})`].filter(Boolean);
  find("#summary .verdict").replaceChildren(element("span", { class: kind }, text));
  find("#summary .failing").replaceChildren(
    ...failing.flatMap((each) => unmet(each).map((gate) => element("li", {}, link(each.name, () => open(each, "#evaluation")), `: ${gate.what}`))),
    ...(facts.length ? [element("li", {}, `${facts.join("; ")}.`)] : []));
}

function latency(each) {
  const found = each.estimate;
  if (!found) return null;
  const [low, high] = found.between_ms || [];
  const estimate = found.between_ms ? `${time(found.latency_ms)} (${time(low)} to ${time(high)})` : time(found.latency_ms);
  return told(found.latency_ms, found.is_bound ? `compute bound only: ${time(found.latency_ms)}` : estimate);
}

function summary() {
  verdict();
  const figured = (each) => each.graph.nodes.filter((node) => node.quantized !== undefined);
  const cpu = (each) => figured(each).filter((node) => node.on === "CPU").length;
  const columns = [["Build", (each) => each.name]];
  if (data.builds.some((each) => each.gates.length)) {
    columns.push(["Gates", (each) => (!each.gates.length ? null
      : told(unmet(each).length, unmet(each).length ? `${unmet(each).length} of ${each.gates.length} not met` : "met", unmet(each).length ? "unmet" : "met"))]);
  }
  const scored = data.builds.find((each) => each.scores.length);
  if (scored) {
    const [metric, last] = [scored.scores[0].metric, scored.scores.at(-1).artifact];
    columns.push([`${metric}, float`, (each) => value(each.scores[0])], [`${metric}, ${last}`, (each) => value(each.scores.at(-1))], ["Lost", lost]);
  }
  columns.push(["Worst cosine", worst], ["Worst compiled cosine", worstRun],
    ["CPU nodes", (each) => told(cpu(each), `${cpu(each)} of ${figured(each).length}`)],
    ["int16", (each) => told(each.int16, `${(100 * each.int16).toFixed(1)}%`)],
    ["Compiled", (each) => { const made = compiled(each); return made ? told(made.bytes, bytes(made.bytes)) : null; }]);
  if (data.builds.some((each) => each.estimate)) columns.push(["Latency", latency]);
  columns.push(["Method", (each) => each.recipe.method]);
  table(find("#summary .table"), columns, data.builds, { name: "builds", key: (each) => each.name, open: (each) => open(each) });
}

function evaluation() {
  const scores = build.scores;
  const names = [...new Set(scores.flatMap((row) => Object.keys(row.by_name)))];
  const metric = scores[0]?.metric;
  table(find("#evaluation .table"), [["Artifact", (row) => row.artifact], ["Pictures", (row) => row.pictures],
    ...names.map((name) => [name, (row) => row.by_name[name] ?? null]),
    [`${metric} below float`, (row) => value(scores[0]) - value(row)]], scores, { name: "scores" });
  find("#evaluation .table").hidden = !scores.length;
  const gates = [...build.gates].sort((a, b) => a.met - b.met).map((gate) => {
    const made = element("div", {}, element("span", { class: gate.met ? "met" : "unmet" }, gate.met ? "met: " : "not met: "), gate.what);
    if (gate.nodes.length) {
      made.append(element("p", {}, "Largest losses:"), element("ul", {}, ...gate.nodes.map((each) => element("li", {},
        nodeLink(each.node),
        each.lost === null ? " runs on the CPU" : ` loses ${figure(each.lost)}`))));
    }
    if (gate.suggestion) {
      const { before, after, suffices } = gate.suggestion;
      made.append(element("p", {}, `Set quantization in project.yaml to (tried: ${figure(before)} → ${figure(after)}, ${suffices ? "meets the gate" : "helps, but misses the gate"}):`),
        element("pre", {}, gate.suggestion.yaml));
    }
    return made;
  });
  const rests = build.estimate ? [element("details", {}, element("summary", {}, "assumptions of the latency estimate"),
    element("ul", {}, ...build.estimate.said.map((each) => element("li", {}, each))))] : [];
  const nothing = scores.length || gates.length ? [] : [element("p", { class: "why" }, "The project defines no evaluation and no gates.")];
  find("#evaluation .gates").replaceChildren(...gates, ...nothing, ...rests);
}

function nodes() {
  table(find("#outputs .table"), [["Output", (o) => o.name], ["Calibrated cosine", (o) => (build.compared ? o.calibrated_cosine : null)],
    ["Quantized cosine", (o) => (build.compared ? o.cosine : null)], ["Compiled cosine", (o) => o.compiled?.cosine ?? null],
    ["Difference to the integer engine (quantized values)", (o) => o.compiled?.codes ?? null]], build.outputs, { name: "outputs" });
  table(find("#nodes .table"), [["Node", (n) => n.name], ["On", (n) => n.on], ["Subgraph", (n) => n.subgraph], ["Type", (n) => n.type],
    ["Shape", (n) => n.shape], ["Calibrated cosine", (n) => n.calibrated], ["Quantized cosine", (n) => n.quantized],
    ["Own error", (n) => n.lost], ["Threshold", (n) => n.threshold], ["Types", (n) => n.dtype],
    ["Trained nodes", (n) => n.origin?.join(", ") || null]], figured(), { name: "nodes", search: true, key: (n) => n.name, open: (n) => choose(n.name),
    address: (n) => addressOf(n.name) });
}

// The colour of a class follows from its name, so it is the same everywhere.
const hue = (name) => `hsl(${[...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 200)} 85% 55%)`;
const boxed = (seen) => seen.boxes ?? []; // null for models without boxes
const areas = (seen) => (seen.painted && !boxed(seen).length ? seen.painted.areas : []);
const names = (seen) => (seen.best.length ? [seen.best[0][0]] : [...areas(seen).filter(([, share]) => share >= 0.01).map(([name]) => name),
  ...boxed(seen).map((box) => box[5])].sort()).join("\n");

function side(title, sample, seen) {
  const made = element("div", {}, seen.boxes ? `${title}: ${many(seen.boxes.length, "box").replace("boxs", "boxes")}` : title);
  const picture = data.pictures[sample.picture];
  if (picture) {
    const image = drawn("image", { href: picture, width: 100, height: 100, preserveAspectRatio: "none" });
    const svg = drawn("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img", "aria-label": `${sample.name}, ${title}` }, image);
    const shape = new Image();
    shape.addEventListener("load", () => { svg.style.aspectRatio = `${shape.naturalWidth} / ${shape.naturalHeight}`; });
    shape.src = picture;
    if (seen.painted) svg.append(drawn("image", { href: seen.painted.map, width: 100, height: 100, preserveAspectRatio: "none", class: "map" }));
    for (const [x1, y1, x2, y2, certain, name] of boxed(seen)) {
      svg.append(drawn("rect", { x: 100 * x1, y: 100 * y1, width: 100 * (x2 - x1), height: 100 * (y2 - y1), stroke: hue(name) },
        drawn("title", {}, `${name} ${certain}`)));
    }
    made.append(svg);
  }
  const rows = seen.best.length ? seen.best : boxed(seen).length ? seen.boxes.map((box) => [box[5], box[4]])
    : areas(seen).map(([name, share]) => [name, share]);
  const swatch = (name) => (boxed(seen).length || seen.painted ? [element("i", { style: `--mark: ${hue(name)}` })] : []);
  made.append(element("ol", {}, ...rows.slice(0, 8).map(([name, certain]) => element("li", {}, ...swatch(name), `${name}  ${figure(certain)}`))));
  return made;
}

function samples() {
  find("#samples .cards").replaceChildren(...build.samples.map((sample) => {
    const differ = names(sample.float) !== names(sample.quantized);
    return element("article", { class: "card" }, element("h3", {}, sample.name, ...(differ ? [element("span", { class: "apart" }, "  other answer")] : [])),
      element("div", { class: "sides" }, side("float", sample, sample.float), side("int8", sample, sample.quantized)),
      element("p", { class: "why" }, Object.entries(sample.cosines).map(([name, cosine]) => `${name}: cosine ${figure(cosine)}`).join("; ")));
  }));
  if (!build.samples.length) find("#samples .cards").append(element("p", { class: "why" }, "There are no samples to show."));
}

function provenance() {
  table(find("#provenance .table"), [["Node", (m) => m.node], ["Bytes", (m) => m.bytes], ["SHA-256", (m) => m.digest], ["Key", (m) => m.key]],
    data.provenance, { name: "artifacts", search: true });
  const tools = new Map();
  for (const made of data.provenance) for (const [name, version] of Object.entries(made.tools)) tools.set(`${name} ${version}`, [name, version]);
  table(find("#provenance .tools"), [["Tool", (t) => t[0]], ["Version", (t) => t[1]]], [...tools.values()].sort(), { name: "tools" });
  const recipe = build.recipe;
  const lines = [`method: ${recipe.method}`, ...(recipe.switches.length ? [`switches: ${recipe.switches.join(", ")}`] : []),
    ...(recipe.wide.length ? [`int16: ${recipe.wide.join(", ")}`] : []),
    ...recipe.trials.map((trial) => `${trial.kept ? "kept" : "tried"}  ${trial.what}  ${trial.told}`),
    ...(recipe.front.length ? ["", "int16   closeness"] : []),
    ...recipe.front.map((trial) => `${(100 * trial.int16).toFixed(1).padStart(5)}%  ${trial.closeness.toFixed(6)}  ${trial.what}`)];
  const said = data.provenance.filter((made) => made.node.startsWith(`${build.name}/`) && Object.keys(made.params).length);
  find("#provenance .recipe").replaceChildren(element("pre", {}, ...linked(lines.join("\n"))),
    ...said.map((made) => element("details", {}, element("summary", {}, `project settings of ${made.stage}`),
      element("pre", {}, JSON.stringify(made.params, null, 1)))));
}

function show(which) {
  build = which;
  find("#summary .notes").replaceChildren(...build.notes.map((note) => element("li", {}, ...linked(note))));
  evaluation();
  graph();
  nodes();
  samples();
  provenance();
  find("#node").replaceChildren(...build.graph.nodes.filter((node) => build.distributions[node.tensor] || build.weights[node.name])
    .map((node) => element("option", { value: node.name }, node.name)));
  errors();
  select(build.losses[0]?.node ?? build.graph.nodes[0]?.name);
  mark();
  document.body.dataset.ready = build.name;
}

find("#title").textContent = `${data.project}: report`;
find("#build").append(...data.builds.map((each) => element("option", { value: each.name }, each.name)));
find("#build").addEventListener("change", ({ target }) => show(data.builds.find((each) => each.name === target.value)));
find("#node").addEventListener("change", ({ target }) => choose(target.value));
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, select")) return;
  event.preventDefault();
  find("#nodes input").focus();
});
// Titles and margins of charts depend on the width.
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  errors();
  tensor();
});
addEventListener("beforeprint", () => {
  plots.forEach((plot) => plot.resize());
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
});
addEventListener("hashchange", follow);
summary();
show(build);
follow();
