"""A model file, chosen by its suffix."""

import numpy as np
import onnx
import pytest

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.frontends import FRONTENDS, read_model
from npumake.graph import dtype, parse_text, upgraded

ONNX = parse_text("agraph (float[1,4] x) => (float[1,4] y) { y = Relu(x) }").to_bytes()


@pytest.mark.parametrize("name", ["m.onnx", "M.ONNX", "net.v2.onnx"])
def test_a_suffix_chooses_the_reader(name):
    assert [node.op_type for node in read_model(ONNX, name).nodes()] == ["Relu"]


@pytest.mark.parametrize(
    ("name", "shown"), [("m.h5", ".h5"), ("model", "model"), ("m.onnx.zip", ".zip"), ("m.", ".")]
)
def test_a_format_nobody_reads_is_named_with_those_that_are(name, shown):
    with pytest.raises(GraphError) as caught:
        read_model(ONNX, name)
    assert caught.value.what == f"no frontend reads a `{shown}` file"
    assert caught.value.hint == "known: " + ", ".join(sorted(FRONTENDS))


@pytest.mark.parametrize("suffix", FRONTENDS)
@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"not a model\n" * 9, bytes(range(256))])
def test_every_reader_refuses_what_is_no_model(suffix, data):
    with pytest.raises(GraphError) as caught:
        read_model(data, f"m{suffix}")
    assert str(caught.value.where).startswith(f"m{suffix}")  # a text also says in which line


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "double"])
def test_floats_of_any_width_are_read_as_float32(kind):
    """A weight beyond float32 is its largest number."""
    number = {"float16": 10, "bfloat16": 16, "double": 11}[kind]
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        agraph ({kind}[1,4] x) => ({kind}[1,4] y) {{
        a = Cast<to=1>(x)  b = Relu(a)  c = Cast<to={number}>(b)  y = Min(c, k) }}""")
    most = 1e300 if kind == "double" else 2.0
    model.graph.initializer.append(onnx.helper.make_tensor("k", number, [1], [most]))
    graph = upgraded(read_model(model.SerializeToString(), "m.onnx")).with_shapes()
    assert {dtype(value) for value in (*graph.inputs, *graph.outputs)} == {"float32"}
    (y,) = OrtSession(graph.to_bytes()).run(None, {"x": np.float32([[-1, 0, 1, 3]])})
    assert y.tolist() == [[0, 0, 1, min(3, most)]]
