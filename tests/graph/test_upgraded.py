"""Old opsets: upgraded, a model computes what it did."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import parse, parse_text, upgraded
from npumake.graph.upgrade import WORKING_OPSET

IMAGE = (1, 2, 6, 8)
LINES = Path(__file__).with_name("old_models.txt").read_text().splitlines()
OLD = [line for line in LINES if line and not line.startswith("#")]


def old(opset: int, body: str, constants: str = "") -> bytes:
    """A model of one image x and one output y; its constants are inputs too, as they were then."""
    inputs = "".join(f", {line.split('=')[0]}" for line in constants.split(";") if line)
    given = ", ".join(filter(None, constants.split(";")))
    model = onnx.parser.parse_model(f"""<ir_version: 3, opset_import: ["" : {opset}]>
        agraph (float[1,2,6,8] x{inputs}) => (float y) <{given}> {{ {body} }}""")
    made = model.graph.output[0].type.tensor_type
    made.ClearField("shape")
    (y,) = OrtSession(model.SerializeToString()).run(None, {"x": np.ones(IMAGE, np.float32)})
    made.shape.SetInParent()
    for axis in range(y.ndim):
        made.shape.dim.add().dim_param = f"D{axis}"
    return model.SerializeToString()


def assert_kept(data: bytes) -> None:
    image = {"x": np.random.default_rng(0).normal(size=IMAGE).astype(np.float32)}
    graph = upgraded(parse(data, "old.onnx"))
    assert graph.opset == WORKING_OPSET
    (before,) = OrtSession(data).run(None, image)
    (after,) = OrtSession(graph.with_shapes().to_bytes()).run(None, image)
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-7)


@pytest.mark.slow(cases=54)
@pytest.mark.parametrize("line", OLD, ids=lambda line: line.partition(" |")[0])
def test_an_old_operator_keeps_its_output(line):
    _, opsets, body, constants = (part.strip() for part in f"{line} |".split("|")[:4])
    first, last = map(int, opsets.split(".."))
    repeated = re.compile(r"([0-9.]+) \* (\d+)")  # 0.1 * 8
    constants = repeated.sub(lambda found: ", ".join([found[1]] * int(found[2])), constants)
    for opset in range(first, last + 1):
        assert_kept(old(opset, body, constants))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", ["1, 1, 2, 2", "1, 1, 1.5, 2.3", "1, 1, 3, 1"])
def test_an_upsample_reads_the_same_pixels(mode, scales):
    assert_kept(
        old(7, f'y = Upsample<mode = "{mode}", scales = [{scales.replace("1,", "1.0,")}]>(x)')
    )
    assert_kept(old(9, f'y = Upsample<mode = "{mode}">(x, s)', f"float[4] s = {{{scales}}}"))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", ["1, 1, 1.5, 2.3", "1, 1, 0.5, 0.5", "1, 1, 0.6, 0.4"])
def test_a_resize_reads_the_same_pixels(mode, scales):
    assert_kept(old(10, f'y = Resize<mode = "{mode}">(x, s)', f"float[4] s = {{{scales}}}"))


def test_a_resize_that_no_new_mode_describes_is_refused():
    data = old(10, 'y = Resize<mode = "nearest">(x, s)', "float[4] s = {1, 1, 0.75, 1.5}")
    with pytest.raises(GraphError, match="shrinks one axis and enlarges another"):
        upgraded(parse(data, "old.onnx"))


def test_an_opset_older_than_any_converter_is_refused():
    graph = parse(old(6, "y = Relu(x)"), "old.onnx")
    with pytest.raises(GraphError) as caught:
        upgraded(graph)
    assert caught.value.what == "the model uses opset 6; the oldest supported is 7"
    assert caught.value.hint == f"export it again with opset {WORKING_OPSET} or newer"


@pytest.mark.parametrize("opset", range(WORKING_OPSET, onnx.defs.onnx_opset_version() + 1))
def test_a_file_of_any_newer_opset_and_format_runs(opset):
    """Also where onnxruntime is older than the exporter, and the operators are not."""
    given = onnx.parser.parse_model(f"""<ir_version: {onnx.IR_VERSION}, opset_import: ["":{opset}]>
        agraph (float[1,2,6,8] x) => (float[1,2,6,8] y)
        <float[2,2,1,1] w = {{1, 2, 3, 4}}> {{ c = Conv(x, w)  y = Relu(c) }}""")
    graph = upgraded(parse(given.SerializeToString(), "new.onnx"))
    assert graph.opset <= 22  # of Conv
    OrtSession(graph.to_bytes()).run(None, {"x": np.ones(IMAGE, np.float32)})


def test_a_new_graph_is_given_back_as_it_is():
    graph = parse_text("agraph (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert upgraded(graph, 17) is graph
