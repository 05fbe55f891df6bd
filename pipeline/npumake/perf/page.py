"""The HTML pages of hb_perf_result: self-contained, in light and dark."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from npumake.perf.assumed import UNKNOWN, latency_text, megabytes
from npumake.perf.estimate import Estimate, Subgraph, latency_of

DDR = "Total DDR (loaded+stored) bytes per frame(MB per frame)"
SUBGRAPH = (
    "Model Subgraph Name",
    "Model Subgraph Calculation Load (OPpf)",
    "Model Subgraph DDR Occupation(Mbpf)",
    "Model Subgraph Latency(ms)",
)
LAYER = ("Layer", "Type", "OPs", "Loaded", "Stored", "Time (us)", "Computes")
NO_LAYERS = (
    "<p class=note>Layer Details need <code>compile: {debug: true}</code> in the project.</p>"
)
STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --paper: #fff; --line: #d5dae1; --soft: #5b616b;
  --unit: #0e7c86; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --paper: #15181d; --line: #363c46;
  --soft: #9aa3b0; --unit: #45b8c4; } }
body { margin: 2rem auto; max-width: 66rem; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; color: var(--unit); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left; }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
li, .note { color: var(--soft); } a { color: var(--unit); }
img { max-width: 100%; border-radius: 6px; }
"""


def model_page(estimate: Estimate, png: bytes) -> str:
    """Model Performance Summary, Details, BIN Model Structure."""
    summary = [
        ("Model Name", estimate.name),
        ("Target", estimate.target + (f" ({estimate.march})" if estimate.march else "")),
        ("Model Latency(ms)", latency_of(estimate)),
        *_fitted_rows(estimate),
        ("FPS", f"{estimate.fps:.2f}" if estimate.fps else UNKNOWN),
        (DDR, megabytes(estimate.loaded + estimate.stored, estimate.moved_interval)),
        ("Loaded Bytes per Frame", f"{estimate.loaded}"),
        ("Stored Bytes per Frame", f"{estimate.stored}"),
        ("Arena, bytes at its peak", f"{estimate.memory.peak}"),
        ("Nodes on the CPU, not in these figures", str(len(estimate.on_cpu))),
    ]
    image = base64.b64encode(png).decode()
    parts = [
        "<h2>Model Performance Summary</h2>",
        table(("", ""), summary),
        "<h2>Details</h2>",
        table(SUBGRAPH, map(_subgraph_row, estimate.subgraphs), links=True),
        "<h2>BIN Model Structure</h2>",
        f'<img alt="subgraphs and nodes on the CPU" src="data:image/png;base64,{image}">',
        *_assumption_list(estimate),
    ]
    return page(estimate.name, parts)


def _fitted_rows(estimate: Estimate) -> list[tuple[str, str]]:
    if estimate.on_board is None:
        return []
    return [
        ("Lower bound, at the unit's peak (ms)", f"{1000 * estimate.at_least:.4g}"),
        ("A run on the board, one thread (ms)", f"{1000 * estimate.on_board:.3g}"),
    ]


def _subgraph_row(part: Subgraph) -> tuple[str, ...]:
    moved = f"{(part.loaded + part.stored) / 1e6:.3f}"
    return part.name, f"{part.ops}", moved, latency_text(part.latency, part.at_least)


def subgraph_page(part: Subgraph, estimate: Estimate) -> str:
    summary = [
        ("OPs per frame", f"{part.ops}"),
        ("Latency(ms)", latency_text(part.latency, part.at_least)),
        ("Loaded Bytes per Frame", f"{part.loaded}"),
        ("Stored Bytes per Frame", f"{part.stored}"),
        ("Function calls", UNKNOWN if part.calls is None else str(part.calls)),
    ]
    layer_table = ["<h2>Layer Details</h2>", table(LAYER, _layer_rows(part))]
    details = layer_table if estimate.debug else [NO_LAYERS]
    parts = ["<h2>Summary</h2>", table(("", ""), summary), *details, *_assumption_list(estimate)]
    return page(part.name, parts)


def _layer_rows(part: Subgraph) -> Iterator[tuple[str, ...]]:
    for layer, time in zip(part.layers, part.times, strict=True):
        numbers = map(str, (layer.ops, layer.loaded, layer.stored))
        took = UNKNOWN if time is None else f"{1e6 * time:.2f}"
        yield layer.name, layer.op, *numbers, took, ", ".join(layer.origin)


def page(title: str, parts: Iterable[str]) -> str:
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join(parts)
    return (
        f"{head}</title>{view}<style>{STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], links: bool = False) -> str:
    """The first column holds names; with `links`, they link to the pages of those names."""
    top = "".join(f"<th{_class(index)}>{escape(cell)}</th>" for index, cell in enumerate(head))
    lines = []
    for first, *others in rows:
        name = escape(first)
        link = f'<a href="{name}.html">{name}</a>' if links else name
        cells = "".join(f"<td{_class(i + 1)}>{escape(cell)}</td>" for i, cell in enumerate(others))
        lines.append(f"<tr><td>{link}</td>{cells}</tr>")
    heading = f"<tr>{top}</tr>" if any(head) else ""
    return f'<div class="wide"><table>{heading}{"".join(lines)}</table></div>'


def _class(column: int) -> str:
    return ' class="number"' if column else ""


def _assumption_list(estimate: Estimate) -> list[str]:
    items = "".join(f"<li>{escape(line)}</li>" for line in estimate.assumptions)
    return ["<h2>Assumptions</h2>", f"<ul>{items}</ul>"]
