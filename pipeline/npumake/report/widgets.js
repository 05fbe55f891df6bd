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
