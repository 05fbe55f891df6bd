"""Two builds compared: what changed is told once, by name, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from npumake.errors import PipelineError
from npumake.graph import Graph
from npumake.report.diff import FactChange, FileDifference, differences
from report.pages import chain
from trained import PER_CHANNEL, calibrated, network
from workspaces import Workspace


def diff(before: Graph, after: Graph, folder: Path) -> dict[str, tuple[FactChange, ...]]:
    for name, graph in (("a.onnx", before), ("b.onnx", after)):
        graph.save(folder / name)
    found = differences(folder / "a.onnx", folder / "b.onnx")
    return dict(found[0].sections) if found else {}


def test_a_build_does_not_differ_from_itself(reported_once: Workspace) -> None:
    out = reported_once.project / "out"
    assert differences(out, out) == ()


def test_a_node_added_is_told_by_name(tmp_path: Path) -> None:
    before, after = chain(10), chain(10)
    node = after.nodes("Add")[0]
    after.insert("Neg", [node.outputs[0]], "extra", after=node)
    found = diff(before, after, tmp_path)
    (added,) = found["nodes"]
    assert (added.name, added.kind) == ("extra", "added")
    assert found.keys() == {"nodes", "size"}


def test_a_node_removed_and_one_of_another_operator(tmp_path: Path) -> None:
    before, after = chain(10), chain(10)
    clamp, other = after.nodes("Relu")[:2]
    after.bypass(clamp)
    after.become(other, "Tanh", other.inputs)
    kinds = {each.name: each.kind for each in diff(before, after, tmp_path)["nodes"]}
    assert kinds == {str(clamp.name): "removed", str(other.name): "changed"}


def test_a_scale_drifts_by_what_it_was_multiplied_with(tmp_path: Path) -> None:
    before = calibrated(network("repvgg"), PER_CHANNEL)
    after = before.copy()
    node = after.nodes("QuantizeLinear")[3]
    scale = node.inputs[1]
    assert scale is not None
    assert scale.const_value is not None
    other = after.constant("other", np.float32(1.25) * scale.const_value.numpy())
    for pair in (node, *(use.node for use in node.outputs[0].uses())):
        after.set_inputs(pair, {1: other})
    changes = diff(before, after, tmp_path)["scales"]
    assert changes
    assert all(each.drift == pytest.approx(0.25, abs=1e-5) for each in changes)


def test_weights_that_changed_are_told_by_their_node(tmp_path: Path) -> None:
    before, after = chain(10), chain(10)
    node = after.nodes("Conv")[1]
    after.set_inputs(node, {1: after.constant("v", np.ones((8, 8, 1, 1), np.float32))})
    found = diff(before, after, tmp_path)
    assert [each.name for each in found["weights"]] == [str(node.name)]
    assert "nodes" not in found


def test_what_moves_furthest_comes_first(reported_once: Workspace) -> None:
    out = reported_once.project / "out"
    for chip in ("rdk-x5", "ara240"):
        (found,) = differences(
            out / f"quantized.{chip}.onnx", out / "@kl" / f"quantized.{chip}.onnx"
        )
        drifts = [abs(each.drift or 0) for each in found.sections["scales"]]
        assert len(drifts) > 3
        assert drifts == sorted(drifts, reverse=True)


@pytest.mark.parametrize(
    ("file", "sections"),
    [
        ("comparison.rdk-x5.json", {"cosines"}),
        ("evaluation.rdk-x5.json", set()),
        ("recipe.rdk-x5.json", {"recipe", "ranges"}),
        ("digits.rdk-x5.hybrid", {"scales", "weights"}),
        ("calibrated.ara240.onnx", {"scales", "zero points"}),
    ],
)
def test_every_kind_of_artifact_is_read(
    reported_once: Workspace, file: str, sections: set[str]
) -> None:
    out = reported_once.project / "out"
    told = {name for each in differences(out / file, out / "@kl" / file) for name in each.sections}
    assert sections <= told <= sections | {"size", "content"}


def test_folders_are_paired_by_name_and_a_lone_file_is_told(
    reported: Workspace, reported_once: Workspace
) -> None:
    out = reported.project / "out"
    (out / "recipe.ara240.json").unlink()
    (out / "extra.json").write_text("{}")
    found = differences(reported_once.project / "out", out)
    assert found == (
        FileDifference("extra.json", {}, "after"),
        FileDifference("recipe.ara240.json", {}, "before"),
    )


@pytest.mark.slow
def test_it_is_readable_and_for_machines(reported: Workspace) -> None:
    nodes = ("digits:rdk-x5/quantized", "digits@kl:rdk-x5/quantized")
    text = reported.npumake("diff", *nodes).stdout
    assert text.startswith("~ quantized.rdk-x5.onnx\n")
    assert "  scales: 1" in text
    (found,) = json.loads(reported.npumake("diff", *nodes, "--json").stdout)
    assert found["file"] == "quantized.rdk-x5.onnx"
    assert all(row["kind"] == "changed" for row in found["sections"]["scales"])
    assert reported.npumake("diff", nodes[0], nodes[0]).stdout == "no difference\n"


@pytest.mark.parametrize("name", ["damaged.onnx", "damaged.hybrid", "damaged.tflite"])
def test_a_damaged_file_is_an_error_of_ours(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"PK\3\4 nothing of the kind")
    with pytest.raises(PipelineError):
        differences(file, file)


@pytest.mark.parametrize("text", ["[" * 100_000, "nothing", '{"outputs": 3}', '{"gates": 3}'])
def test_json_of_a_stranger_is_an_error_of_ours(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(PipelineError):
        differences(tmp_path / "x.json", tmp_path / "x.json")


def test_a_folder_and_a_file_or_nothing_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(PipelineError, match="a folder and a file"):
        differences(tmp_path, tmp_path / "x.json")
    with pytest.raises(PipelineError, match="no such file"):
        differences(tmp_path / "y", tmp_path)
