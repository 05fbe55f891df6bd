"""The vendors' functions: their parameters, what they leave, and what they refuse."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from debug.test_sensitivity import calibrated, patient
from npumake import debug
from npumake.data.samples import Samples
from npumake.debug.calibration_nodes import without
from npumake.debug.curves import averaged, curves
from npumake.debug.diagnosis.rank_causes import rank_causes
from npumake.debug.distributions import bars, boxes, counted
from npumake.debug.functions import sensitivity_text
from npumake.debug.sensitivity import ModelUnderTest
from npumake.errors import GraphError, ProjectError
from npumake.graph import parse_text
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.targets.reader import read_target

SVG = "{http://www.w3.org/2000/svg}"


def names(count: int, kind: str = "activation") -> list[str]:
    found = [one for one in patient("repvgg").nodes if one.kind == kind]
    return [one.name for one in found[:count]]


def curves_in(plot: Path) -> int:
    return len(ElementTree.parse(plot).getroot().findall(f".//{SVG}polyline"))


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"quantize_node": ["weight", "activation"]}, 2),
        ({"quantize_node": "weight"}, 1),
        ({"quantize_node": names(3)}, 3),
        ({"quantize_node": [names(1), names(3)]}, 2),
        ({"non_quantize_node": names(2)}, 2),
        ({"non_quantize_node": [names(1), names(2)], "average_mode": True}, 2),
    ],
)
def test_there_is_a_curve_for_each_name_or_for_each_list(tmp_path, given, count):
    plot = debug.plot_acc_error(tmp_path, None, patient("repvgg", 2), **given)
    assert plot.suffix == ".svg"
    assert curves_in(plot) == count


def test_the_average_is_the_documented_one():
    curve = dict(zip("abcd", [1.0, 0.9, 0.9, 0.8], strict=True))
    assert list(averaged(curve).values()) == pytest.approx([1.0, 0.95, 2.8 / 3, 0.9], rel=1e-12)


def test_a_node_left_in_float_makes_no_error_before_it():
    examined = patient("repvgg", 2)
    last = examined.nodes[-1]
    curve = curves(examined, {"last": [last]}, "mse")["last"]
    assert [name for name, figure in curve.items() if figure] == list(last.owners)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({}, "give either quantize_node or non_quantize_node"),
        ({"quantize_node": "a", "non_quantize_node": "b"}, "give either quantize_node or non"),
        ({"non_quantize_node": ["weight"]}, "weight and activation are for quantize_node"),
        ({"quantize_node": [[]]}, "an empty list of nodes"),
        ({"quantize_node": "zzz"}, "nothing is quantized at `zzz`"),
        ({"quantize_node": "weight", "metric": "zzz"}, "unknown metric `zzz`"),
    ],
)
def test_a_curve_of_nothing_is_refused(tmp_path, given, what):
    with pytest.raises(ProjectError) as caught:
        debug.plot_acc_error(tmp_path, None, patient("repvgg", 1), **given)
    assert caught.value.what.startswith(what)


def test_runall_leaves_the_documented_folders_and_the_same_bytes_twice(tmp_path):
    found = [debug.runall(patient("repvgg", 2), save_dir=tmp_path / each) for each in "ab"]
    assert list(found[0]) == ["weight", "activation"]
    assert found[0] == found[1]
    files = [
        sorted(p.relative_to(tmp_path / each) for p in (tmp_path / each).rglob("*.*"))
        for each in "ab"
    ]
    assert files[0] == files[1]
    assert {path.parts[0] for path in files[0]} == {
        "node_sensitivity",
        "data_distribution",
        "channelwise_distribution",
        "accumulate_error",
    }
    for file in files[0]:
        assert (
            tmp_path.joinpath("a", file).read_bytes() == tmp_path.joinpath("b", file).read_bytes()
        )
        if file.suffix == ".svg":
            ElementTree.parse(tmp_path / "a" / file)


def test_calibration_data_are_files_by_input_in_the_order_of_their_numbers(tmp_path):
    graph, examined = calibrated("repvgg"), patient("repvgg", 11)
    (name,) = (str(value.name) for value in graph.inputs)
    folder = tmp_path / "data" / name
    folder.mkdir(parents=True)
    for number, feed in enumerate(examined.samples):
        np.save(folder / f"{number}.npy", feed[name])
    file = tmp_path / "calibrated.onnx"
    graph.save(file)
    for count in (1, 2, None):
        asked = {"data_num": count, "interested_nodes": names(1)}
        found = debug.get_sensitivity_of_nodes(str(file), "mse", str(tmp_path / "data"), **asked)
        assert found == debug.get_sensitivity_of_nodes(examined, "mse", **asked)


@pytest.mark.parametrize(
    ("array", "what"),
    [
        (np.zeros((1, 1, 9, 9), np.float32), "float32[1, 1, 9, 9] for an input of float32["),
        (np.zeros((1, 1, 8, 8), np.float64), "float64[1, 1, 8, 8] for an input of float32["),
        (np.array([{}]), "not a .npy file of numbers"),
    ],
)
def test_data_that_do_not_fit_are_refused(tmp_path, array, what):
    np.save(tmp_path / "0.npy", array, allow_pickle=True)
    with pytest.raises(ProjectError) as caught:
        debug.get_sensitivity_of_nodes(calibrated("repvgg"), "mse", tmp_path)
    assert caught.value.what.startswith(what)


def test_bars_count_every_number():
    values = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    found = bars(counted(values))
    assert found.counts.sum() == values.size
    inside = (values >= found.edges[0]) & (values < found.edges[-1])
    assert inside.all()
    assert found.largest == np.abs(values).max()


def test_boxes_hold_the_quartiles_of_each_channel():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(1, 3, 40, 40)) * [[[[1]], [[2]], [[3]]]][0] for _ in range(4)]
    found = boxes(lambda: iter(parts), 1)
    rows = np.concatenate(parts, axis=2).swapaxes(0, 1).reshape(3, -1)
    for share, line in ((0.25, found.quarter), (0.5, found.median), (0.75, found.three_quarters)):
        span = rows.max(axis=1) - rows.min(axis=1)
        assert np.abs(line - np.quantile(rows, share, axis=1)).max() <= 2 * span.max() / 1024
    assert found.mean == pytest.approx(rows.mean(axis=1), rel=1e-9)
    with pytest.raises(GraphError):
        boxes(lambda: iter(parts), 4)


def test_on_a_terminal_long_names_of_a_table_give_way_and_keep_their_ends():
    figures = {"cosine-similarity": "0.9991234", "mse": "0.25"}
    table = {"a/very/long/name/of/some/node/Conv_1": figures, "Conv_2": figures}
    whole, cut = (sensitivity_text("node", table, within) for within in (None, 45))
    assert "a/very/long/name/of/some/node/Conv_1  0.9991234" in whole
    assert max(map(len, cut.splitlines())) == 45
    assert [line.split() for line in cut.splitlines()[3:]] == [
        [".../some/node/Conv_1", "0.9991234", "0.25"],
        ["Conv_2", "0.9991234", "0.25"],
    ]
    assert "..." not in sensitivity_text("node", table, 80)


def test_a_point_of_a_curve_is_called_after_its_node_where_those_before_have_no_error(tmp_path):
    examined = patient("repvgg", 2)
    last = examined.nodes[-1]
    curve = curves(examined, {"last": [last]}, "sqnr")["last"]
    finite = [name for name, figure in curve.items() if math.isfinite(figure)]
    plot = debug.plot_acc_error(tmp_path, None, examined, last.name, metric="sqnr")
    told = [one.text.split()[1] for one in ElementTree.parse(plot).iter(f"{SVG}title")]
    assert told == finite == list(last.owners)


def test_an_average_leaves_out_what_has_no_error():
    curve = dict(zip("abcd", [math.inf, 40.0, math.inf, 20.0], strict=True))
    nan, *known = averaged(curve).values()
    assert math.isnan(nan)
    assert known == [40.0, 40.0, 30.0]


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"metrics": []}, "an empty list of metrics"),
        ({"interested_nodes": []}, "an empty list of nodes"),
        ({"interested_nodes": [["a"]]}, "nodes are names, not lists of names"),
    ],
)
def test_lists_of_nothing_and_nested_ones_are_refused(asked, what):
    with pytest.raises(ProjectError) as caught:
        debug.get_sensitivity_of_nodes(patient("repvgg", 1), **asked)
    assert caught.value.what == what


VECTOR = """
<ir_version: 8, opset_import: ["" : 17]>
network (float[4] x) => (float[2] y, float s)
<float[4, 2] w = {0.5, -0.25, 1.0, 0.125, -0.5, 0.75, 0.25, 0.3}>
{
   [mm] y = MatMul (x, w)
   [total] s = ReduceSum <keepdims = 0> (y)
}
"""


@pytest.fixture(scope="module")
def vector() -> ModelUnderTest:
    """Tensors of rank 1 and 0."""
    graph, rng = parse_text(VECTOR).with_shapes(), np.random.default_rng(0)
    feeds = [{"x": rng.normal(size=4).astype(np.float32)} for _ in range(3)]
    recipe = ranges_by_method(graph, observe(graph, feeds), Calibration("max"), True)
    made = calibrated_with(graph, recipe, read_target("ara240"), DEFAULT)
    return ModelUnderTest(made, Samples(("0", "1", "2"), feeds.__getitem__))


def test_all_is_run_of_tensors_without_a_second_axis(vector, tmp_path):
    debug.runall(vector, save_dir=tmp_path)
    boxed = {path.stem for path in tmp_path.glob("channelwise_distribution/*")}
    assert {"x_quantized", "s_quantized"} <= boxed


def test_a_model_that_quantizes_nothing_is_told_so(vector):
    examined = ModelUnderTest(without(vector.calibrated), vector.samples)
    assert rank_causes(examined) == []
    for function in (debug.get_sensitivity_of_nodes, debug.runall):
        with pytest.raises(ProjectError) as caught:
            function(examined)
        assert caught.value.what == "nothing in this model is quantized"
