// The sections of the page, and which build it shows.

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
  const absent = data.refused.length ? [element("span", { class: "unmet" }, `${many(data.refused.length, "build")} failed. `)] : [];
  find("#summary .verdict").replaceChildren(...absent, element("span", { class: kind }, text));
  find("#summary .failing").replaceChildren(
    ...data.refused.map((each) => element("li", {}, `${each.name} was not built: ${[each.what, each.hint].filter(Boolean).join("; ")}`)),
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
