"""Tables of results, draw_table by `rich`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.table import Table

from npumake.cli.columns import Column, Kind, Line, draw_table
from npumake.cli.terminal import value_text
from npumake.debug.compared import Comparison, NodeRow, OutputRow
from npumake.debug.compiled_check import CompiledCheck
from npumake.debug.diagnosis.rank_causes import RankedCause
from npumake.debug.model_check import ModelCheck
from npumake.debug.placement_report import NodePlacement
from npumake.evaluate.figures import AT_SCORE, EvaluationResult

COMPILED = "Compiled Cosine"
WIDE_COLUMNS = 156  # characters of a terminal that has room for every digit of a threshold
NODE = Column("Node", "name")
ON = Column("ON")
SUBGRAPH = Column("Subgraph", is_optional=True)
TYPE = Column("Type", "name", is_optional=True)
STAYING = ("ON", "DataType", "State")  # columns of words that stay whole in an artifact's table


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
    cosines = ("Calibrated Cosine", "Quantized Cosine", *([COMPILED] if compiled else []))
    figures = [Column(head, "figure") for head in (*cosines, "Threshold")]
    columns = [NODE, ON, SUBGRAPH, TYPE, *figures, Column("DataType")]
    lines = [_node_line(row, comparison, bool(compiled), width) for row in comparison.rows]
    results = [_output_line(output, comparison, compiled) for output in comparison.outputs]
    title = f"{project} on {comparison.target}: {_circumstances(comparison, check)}"
    return draw_table(columns, lines, width, title, results)


def _circumstances(comparison: Comparison, check: CompiledCheck | None) -> str:
    """What the figures are of. The compiled file may have run on fewer samples."""
    text = f"float against integers, {comparison.coverage}"
    if check is not None and check.outputs and check.samples != comparison.samples:
        text += f" (the compiled file: {check.samples})"
    if comparison.int16:
        text += f", {comparison.int16:.1%} of multiply-accumulates read int16"
    return text


def _node_line(row: NodeRow, comparison: Comparison, has_compiled: bool, width: int | None) -> Line:
    cells = (
        _mark(row, comparison) + row.node,
        row.on,
        _subgraph(row.subgraph),
        row.type,
        _cosine(row.calibrated_cosine, comparison),
        _cosine(row.cosine, comparison),
        *([""] if has_compiled else []),
        _threshold(row, width),
        row.dtype,
    )
    return Line(cells, _style(row, comparison))


def _output_line(output: OutputRow, comparison: Comparison, compiled: Mapping[str, str]) -> Line:
    cells = (
        output.name,
        "--",
        "--",
        "Output",
        _cosine(output.calibrated_cosine, comparison),
        _cosine(output.cosine, comparison),
        *([compiled.get(output.name, "--")] if compiled else []),
        "--",
        "float",
    )
    return Line(cells)


def _subgraph(number: int | None) -> str:
    return "--" if number is None else f"id({number})"


def _threshold(row: NodeRow, width: int | None) -> str:
    if row.threshold is None:
        return "--"
    return (
        f"{row.threshold:.6f}" if width is None or width >= WIDE_COLUMNS else f"{row.threshold:.4g}"
    )


def _mark(row: NodeRow, comparison: Comparison) -> str:
    """Marks the worst node, for output without colors."""
    return (
        "> " if comparison.worst_node is not None and row.node == comparison.worst_node.node else ""
    )


def _style(row: NodeRow, comparison: Comparison) -> str | None:
    """Red for the worst node, yellow for nodes on the CPU."""
    if _mark(row, comparison):
        return "bold red"
    return None if row.subgraph is not None else "yellow"


def worst_node_lines(comparison: Comparison, project: str = "") -> list[str]:
    """The lines below the table of an inaccurate build: the worst node, and a remedy to try. With a
    `project` it also suggests to check the samples' normalization."""
    worst = comparison.worst_node
    if worst is None:
        return []
    trained_names = ", ".join(name for name in worst.origin if name != worst.node)
    where = f" ({trained_names} in the trained model)" if trained_names else ""
    share = f"{worst.lost:.2%} of" if worst.lost <= 1.0 else "more than"
    noise = f"alone adds noise of {share} the output's energy"
    lines = [f"worst node: {worst.node}{where} {noise}: {worst.cause}"]
    if worst.remedy:
        from npumake.quant.search.holdout import MIN_HOLDOUT_SPLIT  # an accurate build needs none

        before, after = worst.tried
        by = (
            "on held-out samples" if comparison.available >= MIN_HOLDOUT_SPLIT else "on all samples"
        )
        tried = f"# tried {by}: the worst output's cosine goes from {before:.6f} to {after:.6f}"
        lines.append(f"try:  {worst.remedy}  {tried}")
    if worst.search:
        lines.append(f"try:  {worst.search}  # a search of methods and switches, some minutes")
    if project and len(comparison.outputs) == 1 and (worst.remedy or worst.search):
        node = f"{project}:{comparison.target}"
        where = worst.input_settings or f"npumake debug inputs {node}"
        lines.append(f"see:  {where}  # check the preprocessing")
    return lines


def summary_table(
    comparisons: Sequence[tuple[str, Comparison, CompiledCheck | None]],
    width: int | None = None,
) -> Table:
    """One line per project and target: the worst output, the number of CPU nodes, and the share of
    multiply-accumulates that read int16."""
    names = [Column(head, "name") for head in ("Project", "Target", "Worst output")]
    heads = ("Cosine Similarity", COMPILED, "CPU nodes", "int16")
    lines = []
    for project, comparison, check in comparisons:
        worst = min(comparison.outputs, key=_closest_to_none)
        on_cpu = sum(row.subgraph is None for row in comparison.of_graph)
        cosine = _cosine(worst.cosine, comparison)
        ran = min((output.cosine for output in check.outputs), default=None) if check else None
        compiled = "--" if ran is None else f"{ran:.6f}"
        names_of = (project, comparison.target, worst.name)
        figures = (cosine, compiled, str(on_cpu), f"{comparison.int16:.1%}")
        lines.append(Line((*names_of, *figures)))
    return draw_table([*names, *(Column(head, "figure") for head in heads)], lines, width)


def skipped_lines(
    comparisons: Sequence[tuple[str, Comparison, CompiledCheck | None]],
) -> list[str]:
    """The reasons why compiled files were not run, one line each with its targets."""
    targets: dict[str, dict[str, None]] = {}
    for _, comparison, check in comparisons:
        if check and check.skipped:
            targets.setdefault(check.skipped, {})[comparison.target] = None
    return [f"not run: {', '.join(names)}: {reason}" for reason, names in targets.items()]


def evaluation_table(
    evaluations: Sequence[tuple[str, EvaluationResult]], width: int | None = None
) -> Table:
    """One line per artifact and metric: the figure and its drop below the float model. A detector's
    metric is followed by its figures at one score."""
    names = [Column(head, "name") for head in ("Project", "Target", "Artifact", "Metric")]
    lines = []
    for project, evaluated in evaluations:
        for row in evaluated.rows:
            for metric in (row.metric, *(name for name in AT_SCORE if name in row.by_name)):
                drop = evaluated.rows[0].by_name[metric] - row.by_name[metric]
                figures = (f"{row.by_name[metric]:.6g}", f"{drop:.4g}", str(row.pictures))
                lines.append(Line((project, evaluated.target, row.artifact, metric, *figures)))
    heads = ("Figure", "Drop", "Pictures")
    return draw_table([*names, *(Column(head, "figure") for head in heads)], lines, width)


def suspects_table(causes: Sequence[RankedCause], width: int | None = None) -> Table:
    """The loss that each node causes, as a share of the worst output's energy, worst first."""
    figures = [Column(head, "figure") for head in ("Loses", "With fitting grids")]
    lines = [
        Line(
            (cause.node, f"{cause.lost:.3e}", f"{cause.lost - cause.saved:.3e}", cause.cause),
            "bold red" if cause.is_fault else None,
        )
        for cause in causes
    ]
    return draw_table([NODE, *figures, Column("Because", "prose")], lines, width)


def placement_table(rows: Sequence[NodePlacement], width: int | None = None) -> Table:
    """The node table of the vendors' checkers."""
    lines = [
        Line(
            (row.node, row.on, _subgraph(row.subgraph), row.type),
            "yellow" if row.subgraph is None else None,
        )
        for row in rows
    ]
    return draw_table([NODE, ON, SUBGRAPH, TYPE], lines, width)


def targets_table(checks: Sequence[ModelCheck], width: int | None = None) -> Table:
    """One line per target: where the nodes run, and the operators on its CPU with the reasons."""
    columns = [
        Column("Target"),
        Column("NPU", "figure"),
        Column("CPU", "figure"),
        Column("Subgraphs", "figure", is_optional=True),
        Column("Leaks", "figure", is_optional=True),
        Column("On the CPU, because", "prose"),
    ]
    lines = [
        Line(
            (
                check.target,
                str(len(check.nodes) - check.on_cpu),
                str(check.on_cpu),
                str(len(check.subgraphs)),
                str(len(check.leaks)),
                cpu_reasons(check),
            ),
            "bold red" if check.unsupported else "yellow" if check.on_cpu else None,
        )
        for check in checks
    ]
    return draw_table(columns, lines, width)


def cpu_reasons(check: ModelCheck) -> str:
    """`Softmax x2, Exp x1: no integer kernel …; …`, each reason once; alone if it is that of all
    nodes."""
    counted = Counter((row.why, row.type) for row in check.nodes if row.subgraph is None)
    operators: dict[str, list[str]] = {}
    for (why, op), count in counted.items():
        operators.setdefault(why, []).append(f"{op} x{count}")
    refused = [f"{op} does not run" for op in check.unsupported]
    if len(operators) == 1 and check.on_cpu == len(check.nodes):
        return "; ".join((*refused, *operators))
    return "; ".join((*refused, *(f"{', '.join(ops)}: {why}" for why, ops in operators.items())))


def artifact_table(
    heads: Sequence[str], rows: Sequence[Sequence[object]], width: int | None = None
) -> Table:
    """The table of any artifact. Numbers, verdicts and types stay whole; other cells are
    shortened."""
    lines = [Line([value_text(cell) for cell in row]) for row in rows]
    cells = zip(heads, zip(*rows, strict=True) if rows else [()] * len(heads), strict=True)
    return draw_table([Column(head, _kind(head, column)) for head, column in cells], lines, width)


def _kind(head: str, cells: Sequence[object]) -> Kind:
    if all(cell is None or isinstance(cell, int | float) for cell in cells) and cells:
        return "figure"
    return "word" if head in STAYING else "name"


def placement_lines(check: ModelCheck) -> list[str]:
    """The lines below the table: why nodes run on the CPU, then the notes."""
    lines = [f"{check.target}: {len(check.nodes)} nodes, {check.on_cpu} on the CPU, "]
    lines[0] += f"{len(check.subgraphs)} subgraphs" + "".join(f" {n}" for n in check.subgraphs[:8])
    for row in check.nodes:
        if row.why:
            lines.append(f"{row.node} ({row.type}): {row.why}")
            lines += [f"    {limit}" for limit in row.beyond]
    if check.leaks:
        lines.append(f"float between NPU nodes: {', '.join(check.leaks)}")
    for op_type, names in check.unsupported.items():
        lines.append(f"not supported: {op_type}: {', '.join(names)}")
    return [*lines, *(f"note: {note}" for note in check.notes)]


def _cosine(cosine: float | None, comparison: Comparison) -> str:
    """The cosine as text; `--` without samples or without a value."""
    return f"{cosine:.6f}" if comparison.samples and cosine is not None else "--"


def _closest_to_none(output: OutputRow) -> tuple[bool, float]:
    """Sort key: NaN is worst, then low cosines."""
    return not math.isnan(output.cosine), output.cosine
