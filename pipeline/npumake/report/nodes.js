// The nodes of a build: their errors, one tensor, and the graph.

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
