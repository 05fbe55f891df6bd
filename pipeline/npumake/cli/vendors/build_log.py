"""The result of a build in the vendors' formats: log lines, and the files beside the models.

    hb_mapper     search parameters, the selected method, FPS lines, nodes, outputs;
                  <prefix>_quant_info.json
    hb_compile    the same method, nodes, outputs, Summary; <prefix>_node_info.csv as well

Speed figures come from `npumake perf`, and the lines name their basis.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from npumake import digest
from npumake.cli.vendors.log_tables import (
    boxed,
    compile_outputs,
    compile_rows,
    mapper_nodes,
    mapper_outputs,
)
from npumake.debug.compared import Comparison, NodeRow
from npumake.debug.compiled_check import CompiledCheck
from npumake.digest import Json
from npumake.perf.documents import subgraph_document
from npumake.perf.estimate import Estimate, Subgraph
from npumake.perf.page import subgraph_page
from npumake.project.sections import Calibration
from npumake.quant.search.recipe import Recipe

MODELWISE = "modelwise"
NETWORK = "main_graph"  # prefix of subgraph names
CONVERT = "Horizon NN Model Convert"  # log parsers look for this line
METHODS_WITHOUT_SAMPLES = ("load", "skip")


@dataclass(frozen=True)
class VendorBuild:
    """The results of one target's build; None for a stage that did not run. A check reports
    placement and speed only."""

    prefix: str
    calibration: Calibration
    recipe: Recipe | None = None
    comparison: Comparison | None = None
    estimate: Estimate | None = None
    check: CompiledCheck | None = None
    is_check: bool = False


def method_lines(build: VendorBuild) -> Iterator[str]:
    """The calibration method, as lines of hb_mapper's log."""
    calibration, recipe = build.calibration, build.recipe
    if build.is_check or recipe is None or calibration.method in METHODS_WITHOUT_SAMPLES:
        return
    is_search = calibration.method == MODELWISE and calibration.recipe == "plain"
    if is_search:
        yield _parameters(calibration)
    if build.comparison is not None:
        yield f"There are {build.comparison.available} samples in the data set."
    name = MODELWISE + " search" if is_search else recipe.method
    yield f"Run calibration model with {name} method."
    yield from recipe.lines


def _parameters(calibration: Calibration) -> str:
    """The search parameters: candidates and stop criterion."""
    search = calibration.modelwise
    lists = {
        "calibration_type": list(search.methods),
        "max_percentile": list(search.percentiles),
        "per_channel": sorted(search.per_channel, reverse=True),
        "asymmetric": sorted(search.asymmetric, reverse=True),
    }
    stops = {"similarity": search.similarity, "metric": search.metric}
    return "\n".join(
        (
            "The activation calibration parameters:",
            *(f"    {name + ':':<22}{values}" for name, values in lists.items()),
            "The modelwise search parameters:",
            *(f"    {name + ':':<22}{value}" for name, value in stops.items()),
        )
    )


def speed_lines(build: VendorBuild) -> Iterator[str]:
    """One line per subgraph as hb_mapper's compiler prints it, and the basis of the figures."""
    estimate = build.estimate
    for part in estimate.subgraphs if estimate else ():
        seconds, moved = seconds_of(part), part.loaded + part.stored
        ddr = f"DDR = {moved} bytes   (see {part.name}.html)"
        if seconds:
            yield f"FPS={round(1 / seconds, 2)}, latency = {round(seconds * 1e6, 1)} us, {ddr}"
        else:
            yield f"FPS and latency are not known, {ddr}"
    yield from _basis(estimate)


def _basis(estimate: Estimate | None) -> Iterator[str]:
    """The basis of the figures. It must not contain ` CPU `, which log parsers search for."""
    if estimate is not None and estimate.subgraphs:
        kind = "a lower bound" if estimate.latency is None else "by published and fitted figures"
        yield f"estimated, {kind}: `npumake perf` shows its basis"


def summary_lines(build: VendorBuild) -> Iterator[str]:
    """The Summary of hb_compile, and the basis of its figures."""
    estimate = build.estimate
    if estimate is None:
        return
    yield "Summary:"
    if seconds := sum(map(seconds_of, estimate.subgraphs)):
        yield f"FPS (1 core): {1 / seconds:.2f}"
        yield f"latency: {seconds * 1e3:.2f} ms ({seconds * 1e6:.1f} us)"
    yield f"BPU conv original OPs per run: {estimate.ops:,}"
    yield from _basis(estimate)


def seconds_of(subgraph: Subgraph) -> float:
    """The latency of a subgraph in seconds, or its lower bound if the latency is unknown."""
    return subgraph.at_least if subgraph.latency is None else subgraph.latency


def mapper_lines(build: VendorBuild) -> Iterator[str]:
    yield f"Start to {CONVERT}."
    yield from method_lines(build)
    yield from speed_lines(build)
    if build.comparison is not None:
        yield mapper_nodes(build.comparison, build.is_check)
    if build.comparison is not None and not build.is_check:
        yield mapper_outputs(build.comparison)
    yield f"End to {CONVERT}."


def compile_lines(build: VendorBuild) -> Iterator[str]:
    yield from method_lines(build)
    if build.comparison is not None:
        heads, *rows = compile_rows(build.comparison, build.is_check)
        yield from boxed(heads, rows).split("\n")
    if build.comparison is not None and not build.is_check:
        yield from compile_outputs(build.comparison).split("\n")
    yield from summary_lines(build)


def synap_lines(build: VendorBuild) -> Iterator[str]:
    """The tables of nodes and outputs, boxed; SyNAP documents no format of its log."""
    if build.comparison is not None:
        heads, *rows = compile_rows(build.comparison)
        yield from boxed(heads, rows).split("\n")
        yield from compile_outputs(build.comparison).split("\n")


def mapper_files(build: VendorBuild) -> Mapping[str, str]:
    """The texts of hb_mapper's files beside the models, by name."""
    return {**_quant_info(build), **_pages(build)}


def compile_files(build: VendorBuild) -> Mapping[str, str]:
    """The texts of hb_compile's files beside the models, by name."""
    return {**_quant_info(build), **_node_info(build)}


def _quant_info(build: VendorBuild) -> dict[str, str]:
    """Thresholds and cosines by node; the keys are ours, since the vendors document none."""
    if build.comparison is None:
        return {}
    rows = {row.node: _node(row) for row in build.comparison.rows}
    name = f"{build.prefix}_quant_info.json" if build.prefix else "quant_info.json"
    return {name: digest.text(rows, indent=4) + "\n"}


def _node(row: NodeRow) -> Json:
    input_type, _, output_type = row.dtype.partition("/")
    return {
        "type": row.type,
        "on": row.on,
        "subgraph": row.subgraph,
        "threshold": row.threshold,
        "input_type": input_type,
        "output_type": output_type or input_type,
        "calibrated_cosine_similarity": row.calibrated_cosine,
        "quantized_cosine_similarity": row.cosine,
    }


def _node_info(build: VendorBuild) -> dict[str, str]:
    """The node table as CSV."""
    if build.comparison is None:
        return {}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(compile_rows(build.comparison, build.is_check))
    name = f"{build.prefix}_node_info.csv" if build.prefix else "node_info.csv"
    return {name: text.getvalue()}


def _pages(build: VendorBuild) -> dict[str, str]:
    """The pages and documents named in the FPS lines."""
    pages = {}
    for part in build.estimate.subgraphs if build.estimate else ():
        assert build.estimate is not None
        pages[f"{part.name}.html"] = subgraph_page(part, build.estimate)
        document = subgraph_document(part, build.estimate)
        pages[f"{part.name}.json"] = digest.text(document, indent=1) + "\n"
    return pages
