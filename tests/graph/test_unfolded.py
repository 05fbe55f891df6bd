"""What an ONNX file says in another place or in short: weights beside it, sparse or of half
precision, functions of its own. All of it becomes plain nodes and dense float weights."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from frontends.nets import Beside
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import array, dtype, files_beside, in_single, parse, parse_text

W = np.arange(6, dtype=np.float32).reshape(2, 3)
FILE = Beside("w.bin", b"\xff" * 8 + W.tobytes())


def model(body: str, header: str = '<ir_version: 8, opset_import: ["" : 17]>') -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{header} agraph {body}")


def outside(**said: object) -> bytes:
    """y = x + w, where w lies as `said`."""
    given = model("(float[2,3] x) => (float[2,3] y) { y = Add(x, w) }")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=said.pop("dims", [2, 3]))
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in said.items():
        tensor.external_data.add(key=key, value=str(value))
    given.graph.initializer.append(tensor)
    return given.SerializeToString()


def refusal(data: bytes, *beside: Beside) -> str:
    with pytest.raises(GraphError) as caught:
        parse(data, "m.onnx", beside)
    assert caught.value.where == "m.onnx"
    return caught.value.what


# -- beside the model ----------------------------------------------------------------------


@pytest.mark.parametrize("location", ["w.bin", "./w.bin", "deep/down/w.bin"])
def test_a_weight_is_read_from_the_file_that_came_with_the_model(location):
    data = outside(location=location, offset=8, length=24)
    graph = parse(data, "m.onnx", [Beside("other.bin", b""), FILE])
    assert array(graph.values()["w"]).tolist() == W.tolist()


def test_the_longest_end_of_its_path_tells_a_file_from_another():
    near = Beside("b/w.bin", W.tobytes())
    graph = parse(outside(location="a/b/w.bin"), "m.onnx", [FILE, near])
    assert array(graph.values()["w"]).tolist() == W.tolist()


def test_a_model_tells_which_files_it_needs():
    assert files_beside(outside(location="./deep/w.bin")) == ("deep/w.bin",)
    assert files_beside(parse_text("agraph (float x) => (float y) {y = Abs(x)}").to_bytes()) == ()
    assert files_beside(b"no model") == ()


@pytest.mark.parametrize(
    "location",
    ["../w.bin", "a/../../w.bin", "/w.bin", "..\\w.bin", "C:\\w.bin", "C:w.bin", "", ".", "w\0"],
)
def test_a_path_that_leads_elsewhere_is_refused(location):
    data = outside(location=location, offset=8)
    assert "is outside the folder of the model" in refusal(data, FILE)
    with pytest.raises(GraphError, match="outside the folder"):
        files_beside(data)


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"offset": 9}, "is bytes 9 to 33 of `w.bin`, which has 32"),
        ({"offset": -1}, "is bytes -1 to 23 of"),
        ({"length": 1 << 60}, r"takes 24 bytes, not 1152921504606846976"),
        ({"dims": [1 << 40, 1 << 20]}, "the weights are more than the 2 GiB|of `w.bin`, which has"),
        ({"dims": [-2, 3]}, "takes -24 bytes|takes"),
        ({"offset": "much"}, "not a valid ONNX model: invalid literal"),
    ],
)
def test_bytes_that_are_not_there_are_refused(said, what):
    import re

    assert re.search(what, refusal(outside(location="w.bin", **said), FILE))


# -- sparse --------------------------------------------------------------------------------


def sparse(values: list[float], indices: object, dims: list[int]) -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(
        values=helper.make_tensor("w", TensorProto.FLOAT, [len(values)], values),
        indices=numpy_helper.from_array(np.array(indices, np.int64), "w_indices"),
        dims=dims,
    )


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["flat", "per axis"])
def test_a_sparse_weight_is_written_out(indices):
    given = model("(float[2,3] x) => (float[2,3] y) { y = Add(x, w) }")
    given.graph.sparse_initializer.append(sparse([2, 7], indices, [2, 3]))
    graph = parse(given.SerializeToString(), "m.onnx")
    assert array(graph.values()["w"]).tolist() == [[0, 2, 0], [0, 0, 7]]


def test_a_sparse_constant_is_written_out():
    given = model("(float[2,3] x) => (float[2,3] y) { y = Add(x, w) }")
    constant = helper.make_node("Constant", [], ["w"], sparse_value=sparse([4], [0], [2, 3]))
    given.graph.node.insert(0, constant)
    graph = parse(given.SerializeToString(), "m.onnx")
    assert array(graph.nodes()[0].inputs[1]).tolist() == [[4, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("values", "indices", "dims", "what"),
    [
        ([1], [6], [2, 3], "indices of the sparse weight `w` do not fit"),
        ([1], [-1], [2, 3], "do not fit"),
        ([1], [[0, 3]], [2, 3], "do not fit"),
        ([1], [0, 1], [2, 3], "do not fit"),
        ([1], [0], [1 << 20, 1 << 20], "more than 256 MiB"),
        ([1], [0], [-2, 3], "more than 256 MiB"),
    ],
)
def test_a_sparse_weight_that_is_none_is_refused(values, indices, dims, what):
    given = model("(float[2,3] x) => (float[2,3] y) { y = Add(x, w) }")
    given.graph.sparse_initializer.append(sparse(values, indices, dims))
    assert what in refusal(given.SerializeToString())


# -- functions -----------------------------------------------------------------------------


def functions(*texts: str, body: str = "y = mine.f(x)", opset: int = 17) -> bytes:
    written = "\n".join(f'<domain: "mine", opset_import: ["":17, "mine":1]> {t}' for t in texts)
    header = f'<ir_version: 9, opset_import: ["" : {opset}, "mine" : 1]>'
    graph = f"agraph (float[2] x) => (float[2] y) {{ {body} }}"
    return onnx.parser.parse_model(f"{header} {graph} {written}").SerializeToString()


def test_functions_are_written_out_with_their_attributes():
    data = functions(
        "f <a: float = 0.5>(x) => (y) { t = mine.g<b: float = @a>(x) y = mine.g(t) }",
        "g <b: float = 0.25>(x) => (y) { y = LeakyRelu<alpha: float = @b>(x) }",
        body="t = mine.f(x) y = mine.f<a: float = 0.125>(t)",
    )
    graph = parse(data, "m.onnx")
    assert [node.op_type for node in graph.nodes()] == ["LeakyRelu"] * 4
    assert not graph.model.functions
    (y,) = OrtSession(graph.to_bytes()).run(None, {"x": np.array([-1, 1], np.float32)})
    assert y.tolist() == [-(0.5 * 0.25 * 0.125 * 0.25), 1]
    assert len({node.name for node in graph.nodes()}) == 4


def test_a_function_of_another_opset_is_read_where_it_means_the_same():
    relu, gelu = "f (x) => (y) { y = Relu(x) }", "f (x) => (y) { y = Gelu(x) }"
    (node,) = parse(functions(relu, opset=20), "m.onnx").nodes()
    assert node.op_type == "Relu"
    what = "the model's function `f` uses `Gelu` of opset 17, the model that of 20"
    assert refusal(functions(gelu, opset=20)) == what


def test_functions_that_call_each_other_in_a_circle_are_refused():
    data = functions("f (x) => (y) { y = mine.g(x) }", "g (x) => (y) { y = mine.f(x) }")
    assert "ends up calling itself" in refusal(data)


def test_functions_that_double_in_each_other_are_refused():
    first = "f (x) => (y) { t = mine.f0(x) y = mine.f0(t) }"
    more = [f"f{n} (x) => (y) {{ t = mine.f{n + 1}(x) y = mine.f{n + 1}(t) }}" for n in range(40)]
    data = functions(first, *more, "f40 (x) => (y) { y = Relu(x) }")
    assert refusal(data) == "written out, its functions are more than 100000 nodes"


# -- half precision ------------------------------------------------------------------------


def test_half_precision_becomes_single_everywhere():
    given = model("""(float16[2] x, bool when) => (float16[2] y) <int64[1] n = {2}> {
        a = Mul(x, w)
        b = If(when) <then_branch = yes () => (float16[2] t) { t = Add(a, w) },
                      else_branch = no () => (float16[2] e) { e = Cast<to = 10>(x) }>
        c = ConstantOfShape(n)
        y = Add(b, c) }""")
    half = numpy_helper.from_array(np.array([3, 4], np.float16), "w")
    given.graph.initializer.append(half)
    given.graph.node[2].attribute.append(
        helper.make_attribute("value", numpy_helper.from_array(np.array([5], np.float16)))
    )
    graph = parse(given.SerializeToString(), "m.onnx")
    in_single(graph)
    assert [dtype(value) for value in (graph.inputs[0], graph.outputs[0])] == ["float32"] * 2
    assert array(graph.values()["w"]).dtype == np.float32
    session = OrtSession(graph.with_shapes().to_bytes())
    feeds = {"x": np.array([1, 2], np.float32)}
    runs = [session.run(None, {**feeds, "when": np.array(w)})[0].tolist() for w in (True, False)]
    assert runs == [[3 + 3 + 5, 8 + 4 + 5], [6, 7]]
