"""A build that is broken in one place: what the console says is where, and what helps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from debug.test_rank_causes import scaled
from npumake.cli.tables import worst_node_lines
from npumake.debug.compared import Comparison, Distance, OutputRow, WorstNode
from npumake.graph import Graph
from workspaces import Workspace, add_evaluation

LOADED = """
model: {path: trained_quantized.onnx}
data: {image: {files: codes/*.npy}}
calibration: {method: load}
targets: [rdk-x5]
"""
ASKED = "digits:rdk-x5/comparison"


def said_of(workspace: Workspace, asked: str = ASKED) -> str:
    """By the build, a line for whom it blames and one for what to try."""
    output = workspace.npumake("build", asked, check=False).stdout
    found = [line for line in output.splitlines() if line.startswith(("worst node:", "try:"))]
    return "\n".join(found)


def load(workspace: Workspace, model: Graph) -> None:
    """Make the project one of a model that brings its scales."""
    project = workspace.project
    model.save(project / "trained_quantized.onnx")
    (project / "codes").mkdir()
    for file in sorted((project / "samples").glob("*.npy"))[:8]:
        np.save(project / "codes" / file.name, np.load(file).astype(np.float32) - 128)
    (project / "project.yaml").write_text(LOADED)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["down_relu6_quantized", "block2_depthwise_fused_weight_dequantized"]
)
def test_a_wrong_scale_that_the_model_brings_is_told(
    built_once: Workspace, fresh: Workspace, name: str
) -> None:
    """The scale of what a Conv reads, or of its weights: its bias contradicts both."""
    made = Graph.load(built_once.project / "out" / "quantized.rdk-x5.onnx")
    load(fresh, scaled(made, name, 4.0))
    output = fresh.npumake("build", ASKED).stdout
    (said,) = (line for line in output.splitlines() if "scale than the products" in line)
    assert said.endswith(": block2_depthwise (0.25 times)")


@pytest.mark.slow
def test_what_was_calibrated_with_other_data_says_so(fresh: Workspace) -> None:
    for file in Path(fresh.project / "samples").glob("*.npy"):
        np.save(file, np.load(file) // 4)
    add_evaluation(fresh, 30)
    (fresh.project / "gates.yaml").write_text("- {metric: top1, max_drop: 5}\n")
    output = fresh.npumake("build", "digits:rdk-x5/gates", check=False).stdout
    said = output.partition("hint: ")[2]
    assert said.startswith("preprocess_image: in the evaluation data values are clipped at ")
    assert "calibrate with data like those that are evaluated" in said


@pytest.mark.slow
def test_what_failed_is_said_again_behind_the_tables(fresh: Workspace) -> None:
    (fresh.project / "gates.yaml").write_text("- {cosine: 0.99999}\n")
    lines = fresh.npumake("build", "digits:rdk-x5/gates", check=False).stdout.splitlines()
    at = lines.index("failed    digits:rdk-x5/gates")
    (what,) = (line.removeprefix("error: ") for line in lines if line.startswith("error: "))
    assert what.endswith("; the gate is 0.99999")
    assert lines[-2] == f"failed    digits:rdk-x5/gates: {what}"
    assert any(line.startswith("digits on rdk-x5: float against") for line in lines[at:])


def compared(*, outputs: int, worst_node: WorstNode) -> Comparison:
    none = Distance(0.0, None, None, 0.0, 0.0, 0.0)
    said = tuple(OutputRow(f"y{number}", 0.9, 0.9, none, none) for number in range(outputs))
    return Comparison("rdk-x5", 1, (), said, worst_node=worst_node)


def test_where_no_line_is_enough_a_search_is_advised_and_a_look_at_what_is_fed() -> None:
    broken = WorstNode(
        "conv", 0.03, (), "8 bits are too few here", "", search="calibration: {recipe: best}"
    )
    worst, *rest = worst_node_lines(compared(outputs=1, worst_node=broken), "mobilenet")
    assert worst.startswith("worst node: conv alone adds noise of 3.00%")
    assert [line.partition("  #")[0] for line in rest] == [
        "try:  calibration: {recipe: best}",
        "see:  npumake debug inputs mobilenet:rdk-x5",
    ]
    assert len(worst_node_lines(compared(outputs=2, worst_node=broken), "mobilenet")) == 2


def test_noise_beyond_an_answer_that_is_all_but_zero_has_no_share() -> None:
    """A detector that sees nothing answers next to nothing."""
    loud = WorstNode("conv", 2e8, (), "8 bits are too few here", "")
    (worst,) = worst_node_lines(compared(outputs=2, worst_node=loud))
    assert worst.startswith("worst node: conv alone adds noise of more than the output's energy:")


def test_a_model_that_brings_its_scales_is_advised_neither() -> None:
    brought = WorstNode("conv", 0.03, (), "the scale of its bias is 0.25 times", "")
    assert len(worst_node_lines(compared(outputs=1, worst_node=brought), "mobilenet")) == 1
