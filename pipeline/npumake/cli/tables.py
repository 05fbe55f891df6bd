"""Tables of results, drawn by `rich`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.table import Table

from npumake.debug.compared import Comparison, NodeRow, OutputRow
from npumake.debug.compiled_check import CompiledCheck
from npumake.debug.diagnosis.rank_causes import RankedCause
from npumake.debug.model_check import Checked
from npumake.debug.placement_report import NodePlacement
from npumake.evaluate.figures import Evaluated

COMPILED = "Compiled Cosine"
WIDE_COLUMNS, TIGHT_COLUMNS = 156, 100  # characters of a terminal that has room for every column
MIN_NAME_WIDTH = 10  # characters of a node's name on the narrowest
MAX_NAME_WIDTH = (
    40  # characters of a node's name; a longer one keeps its end, which tells nodes apart
)


def comparison_table(
    project: str,
    comparison: Comparison,
    check: CompiledCheck | None = None,
    width: int | None = None,
) -> Table:
    """The node table of the vendor toolchains, with the model's outputs last.

    `check` adds the compiled file's outputs. `width` is the terminal's, in characters. Thresholds
    are those of a node's input, cosines those of its output.
    """
    compiled = {o.name: f"{o.cosine:.6f}" for o in check.outputs} if check else {}
    table = _node_table(project, comparison)
    narrow = width if width is not None and width < WIDE_COLUMNS else None
    longest = max((len(row.dtype) for row in comparison.rows), default=0)
    columns, room = _columns(table, bool(compiled), longest, narrow)
    for row in comparison.rows:
        cells = {
            "Node": shortened(_mark(row, comparison) + row.node, room),
            "ON": row.on,
            "Subgraph": "--" if row.subgraph is None else f"id({row.subgraph})",
            "Type": row.type,
            "Calibrated Cosine": _cosine(row.calibrated_cosine, comparison),
            "Quantized Cosine": _cosine(row.cosine, comparison),
            "Threshold": _threshold(row, narrow is not None),
            "DataType": row.dtype,
        }
        table.add_row(*(cells.get(name, "") for name in columns), style=_style(row, comparison))
    table.add_section()
    for output in comparison.outputs:
        cells = {
            "Node": shortened(output.name, room),
            "Type": "Output",
            "Calibrated Cosine": _cosine(output.calibrated_cosine, comparison),
            "Quantized Cosine": _cosine(output.cosine, comparison),
            COMPILED: compiled.get(output.name, "--"),
            "DataType": "float",
        }
        table.add_row(*(cells.get(name, "--") for name in columns), style="bold")
    return table


def _columns(
    table: Table, has_compiled: bool, longest: int, narrow: int | None
) -> tuple[list[str], int]:
    """Adds the columns; returns their names and the maximal length of a node's name.

    `narrow` is the width of a narrow terminal, which wraps long heads; a tight one also omits the
    subgraph. `longest` is the length of the longest DataType."""
    cosines = ["Calibrated Cosine", "Quantized Cosine", *([COMPILED] if has_compiled else [])]
    texts = {"ON": 3, "Subgraph": 8, "Type": 18}
    if narrow and narrow < TIGHT_COLUMNS:
        texts = {"ON": 3, "Type": 10}
    heads = {name: max(map(len, name.split())) if narrow else len(name) for name in cosines}
    last = {"Threshold": 9 if narrow else 10, "DataType": max(8, longest) if narrow else 11}
    if narrow:
        table.padding = 0
    table.add_column("Node", no_wrap=True)
    for name, least in texts.items():
        low, high = (least, least) if narrow else (len(name), None)
        table.add_column(name, no_wrap=True, min_width=low, max_width=high)
    for name, least in heads.items():
        table.add_column(name, justify="right", no_wrap=not narrow, min_width=least)
    table.add_column("Threshold", justify="right", no_wrap=True, min_width=last["Threshold"])
    table.add_column("DataType", no_wrap=True, min_width=last["DataType"])
    columns = ["Node", *texts, *cosines, *last]
    other_width = (
        sum((*texts.values(), *heads.values(), *last.values())) + len(columns) + 1
    )  # and lines
    return columns, MAX_NAME_WIDTH if narrow is None else max(narrow - other_width, MIN_NAME_WIDTH)


def _threshold(row: NodeRow, is_narrow: bool) -> str:
    if row.threshold is None:
        return "--"
    return f"{row.threshold:.4g}" if is_narrow else f"{row.threshold:.6f}"


def _node_table(project: str, comparison: Comparison) -> Table:
    """An empty table; in a narrow terminal it shortens names, not figures."""
    title = (
        f"{project} on {comparison.target}: float against integers, {comparison.samples} samples"
    )
    return Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def _mark(row: NodeRow, comparison: Comparison) -> str:
    """Marks the worst node, for output without colours."""
    return "> " if comparison.guilty is not None and row.node == comparison.guilty.node else ""


def _style(row: NodeRow, comparison: Comparison) -> str | None:
    """Red for the worst node, yellow for nodes on the CPU."""
    if _mark(row, comparison):
        return "bold red"
    return None if row.subgraph is not None else "yellow"


def guilty_lines(comparison: Comparison, project: str = "") -> list[str]:
    """The lines below the table of an inaccurate build: the worst node, and what to try. With a
    `project` it also suggests to check the samples' normalization."""
    guilty = comparison.guilty
    if guilty is None:
        return []
    trained_names = ", ".join(name for name in guilty.origin if name != guilty.node)
    where = f" ({trained_names} in the trained model)" if trained_names else ""
    share = f"{guilty.lost:.2%} of" if guilty.lost <= 1.0 else "more than"
    noise = f"alone adds noise of {share} the answer's energy"
    lines = [f"worst node: {guilty.node}{where} {noise}: {guilty.cause}"]
    if guilty.remedy:
        before, after = guilty.tried
        tried = f"# tried: the cosine of the worst answer goes from {before:.6f} to {after:.6f}"
        lines.append(f"try:  {guilty.remedy}  {tried}")
    if guilty.search:
        lines.append(f"try:  {guilty.search}  # a search of methods and switches, some minutes")
    if project and len(comparison.outputs) == 1 and (guilty.remedy or guilty.search):
        node = f"{project}:{comparison.target}"
        where = guilty.fed or f"npumake debug inputs {node}"
        lines.append(f"see:  {where}  # is it fed as it was trained?")
    return lines


def summary_table(
    comparisons: Sequence[tuple[str, Comparison, CompiledCheck | None]],
) -> Table:
    """One line per project and target: the worst output, and the number of CPU nodes."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("Project", "Target", "Worst output"):
        table.add_column(name, no_wrap=True)
    table.add_column("Cosine Similarity", justify="right")
    table.add_column(COMPILED, justify="right")
    table.add_column("CPU nodes", justify="right")
    for project, comparison, check in comparisons:
        worst = min(comparison.outputs, key=_closest_to_none)
        on_cpu = sum(row.subgraph is None for row in comparison.of_graph)
        cosine = _cosine(worst.cosine, comparison)
        ran = min((output.cosine for output in check.outputs), default=None) if check else None
        compiled = "--" if ran is None else f"{ran:.6f}"
        name = shortened(worst.name)
        table.add_row(project, comparison.target, name, cosine, compiled, str(on_cpu))
    return table


def skipped_lines(
    comparisons: Sequence[tuple[str, Comparison, CompiledCheck | None]],
) -> list[str]:
    """The reasons why compiled files were not run, one line each with its targets."""
    targets: dict[str, dict[str, None]] = {}
    for _, comparison, check in comparisons:
        if check and check.skipped:
            targets.setdefault(check.skipped, {})[comparison.target] = None
    return [f"not run: {', '.join(names)}: {reason}" for reason, names in targets.items()]


def evaluation_table(evaluations: Sequence[tuple[str, Evaluated]]) -> Table:
    """One line per artifact and metric: the figure and its drop below the float model."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("Project", "Target", "Artifact", "Metric"):
        table.add_column(name, no_wrap=True)
    for name in ("Figure", "Drop", "Pictures"):
        table.add_column(name, justify="right", no_wrap=True)
    for project, evaluated in evaluations:
        for row in evaluated.rows:
            drop = evaluated.rows[0].value - row.value
            figures = (f"{row.value:.6g}", f"{drop:.4g}", str(row.pictures))
            table.add_row(project, evaluated.target, row.artifact, row.metric, *figures)
    return table


def suspects_table(causes: Sequence[RankedCause]) -> Table:
    """The loss that each node causes, as a share of the worst output's energy, worst first."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("Node", no_wrap=True)
    for name in ("Loses", "With fitting grids"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("Because", overflow="fold")
    for cause in causes:
        figures = (f"{cause.lost:.3e}", f"{cause.lost - cause.saved:.3e}")
        style = "bold red" if cause.is_fault else None
        table.add_row(shortened(cause.node), *figures, cause.cause, style=style)
    return table


def placement_table(rows: Sequence[NodePlacement]) -> Table:
    """The node table of the vendors' checkers."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("Node", "ON", "Subgraph", "Type"):
        table.add_column(name, no_wrap=True, min_width=len(name))
    for row in rows:
        subgraph = "--" if row.subgraph is None else f"id({row.subgraph})"
        style = "yellow" if row.subgraph is None else None
        table.add_row(shortened(row.node), row.on, subgraph, row.type, style=style)
    return table


def placement_lines(check: Checked) -> list[str]:
    """The lines below the table: why nodes run on the CPU, then the notes."""
    lines = [f"{check.target}: {len(check.nodes)} nodes, {check.on_cpu} on the CPU, "]
    lines[0] += f"{len(check.subgraphs)} subgraphs" + "".join(f" {n}" for n in check.subgraphs[:8])
    for row in check.nodes:
        if row.why:
            lines.append(f"{row.node} ({row.type}): {row.why}")
            lines += [f"    {limit}" for limit in row.beyond]
    for op_type, names in check.unsupported.items():
        lines.append(f"not supported: {op_type}: {', '.join(names)}")
    return [*lines, *(f"note: {note}" for note in check.notes)]


def _cosine(cosine: float | None, comparison: Comparison) -> str:
    """The cosine as text; `--` without samples or without a value."""
    return f"{cosine:.6f}" if comparison.samples and cosine is not None else "--"


def _closest_to_none(output: OutputRow) -> tuple[bool, float]:
    """Sort key: NaN is worst, then low cosines."""
    return not math.isnan(output.cosine), output.cosine


def shortened(name: str, most: int = MAX_NAME_WIDTH) -> str:
    return name if len(name) <= most else "..." + name[3 - most :]
