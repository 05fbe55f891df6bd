"""A graph with custom nodes runs as if onnxruntime knew them, and fails in the user's words."""

from dataclasses import replace

import numpy as np
import pytest

from custom.files import MODEL, OURS
from npumake.bundle.archive import Bundle
from npumake.custom.operators import NO_OPERATORS, Operators, operators_in
from npumake.custom.shapes import with_shapes
from npumake.engine.float_session import float_session
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.parallel import side_by_side
from npumake.engine.reference import ReferenceSession
from npumake.errors import GraphError, Place, StageError
from npumake.graph import Graph, parse_text, shape
from npumake.passes import optimized
from npumake.runtime import Session

IMAGE = np.random.default_rng(0).normal(size=(1, 1, 8, 8)).astype(np.float32)


def operators(text: str = OURS) -> Operators:
    return operators_in({"shrink.py": text.encode()})


def graph(text: str = MODEL) -> Graph:
    return with_shapes(parse_text(text), operators())


def by_onnx() -> np.ndarray:
    """The same model with ONNX's own operators."""
    text = MODEL.replace(
        "vendor.ops.Shrink2<kernel_size = 2, bias = 0.5>(r)",
        "MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r) s5 = Add(s, half)",
    )
    text = text.replace("Reshape(s,", "Reshape(s5,").replace(
        "int64[2] flat", "float half = {0.5}, int64[2] flat"
    )
    return OrtSession(parse_text(text).to_bytes()).run(None, {"image": IMAGE})[0]


def test_a_custom_node_computes_what_its_onnx_twin_does():
    (y,) = float_session(graph(), operators()).run(None, {"image": IMAGE})
    np.testing.assert_array_equal(y, by_onnx())


def test_a_graph_without_custom_nodes_is_one_onnxruntime_session():
    plain = parse_text("agraph (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert isinstance(float_session(plain, operators()), OrtSession)


def test_inputs_constants_and_outputs_of_the_model_may_be_a_custom_nodes():
    text = """<ir_version: 8, opset_import: ["" : 13, "my" : 1]>
    agraph (float[2] x) => (float[2] a, float[2] c, float[2] z) <float[2] k = {10, 20}> {
        a = my.Sum(x, k)  b = Neg(a)  c = my.Sum(b, a, k)  z = If(yes) <
            then_branch = t () => (float[2] u) { u = Add(c, x) },
            else_branch = e () => (float[2] v) { v = Neg(k) }> }"""
    text = text.replace("<float[2] k", "<bool yes = {1}, float[2] k")
    code = b"""from npumake.custom import *
@op_implement_register("Sum")
class Sum:
    def compute(self, first, *others):
        for other in others:
            first += other  # its own copy
        return [first]
@op_shape_infer_register("Sum")
def shapes(given):
    return given[:1]
"""
    sums = operators_in({"sum.py": code})
    session = float_session(with_shapes(parse_text(text), sums), sums)
    x = np.array([1, 2], np.float32)
    a, c, z = session.run(["a", "c", "z"], {"x": x})
    assert (x.tolist(), a.tolist(), c.tolist()) == ([1, 2], [11, 22], [10, 20])
    assert z.tolist() == [11, 22]


def test_what_an_instance_keeps_is_forgotten_before_the_next_sample():
    text = OURS.replace("k = self._kernel_size", "self._bias += 1; k = self._kernel_size")
    session = float_session(graph(), operators(text))
    made = [y for (y,) in side_by_side(lambda f: session.run(None, f), [{"image": IMAGE}] * 8)]
    assert {y.tobytes() for y in made} == {made[0].tobytes()}


@pytest.mark.parametrize(
    ("body", "what", "line"),
    [
        ("return X[9, 9, 9, 9]", "IndexError", 12),
        ("return X / undefined", "NameError", 12),
        ("return [X, X]", "gives 2 arrays", None),
        ("return X", r"gives float32\[1, 2, 6, 6\], the graph says float32\[1, 2, 3, 3\]", None),
        ("return None", r"gives object\[\]", None),
        ("return X[:, :, :3, :3] * 1j", "gives complex64", None),
    ],
)
def test_a_failing_operator_is_one_error_at_the_users_line(body, what, line):
    text = OURS.replace("n, c, h, w = X.shape\n        return", f"{body}\n        return")
    with pytest.raises(StageError, match=what) as caught:
        float_session(graph(), operators(text)).run(None, {"image": IMAGE})
    assert caught.value.what.startswith("`s` (Shrink2)")
    assert caught.value.where == (Place("shrink.py", line, 1) if line else "shrink.py")


def test_an_attribute_the_class_does_not_take_is_one_error():
    other = graph(MODEL.replace("bias = 0.5", "gain = 0.5"))
    with pytest.raises(StageError, match=r"`s` \(Shrink2\): TypeError.*'gain'"):
        float_session(other, operators()).run(None, {"image": IMAGE})


def test_float64_from_numpy_becomes_what_the_graph_says():
    text = OURS.replace("+ self._bias", "+ np.zeros(1, np.float64) + self._bias")
    (y,) = float_session(graph(), operators(text)).run(None, {"image": IMAGE})
    np.testing.assert_array_equal(y, by_onnx())


@pytest.mark.parametrize(
    "feeds", [{}, {"image": IMAGE[0]}, {"image": IMAGE.astype(np.int8)}, {"x": IMAGE}]
)
def test_feeds_that_do_not_fit_are_refused(feeds):
    with pytest.raises(GraphError):
        float_session(graph(), operators()).run(None, feeds)


def test_passes_leave_a_custom_node_and_its_numbers_alone():
    better = optimized(graph())
    assert [node.op_type for node in better.nodes() if node.domain] == ["Shrink2"]
    (y,) = float_session(better, operators()).run(None, {"image": IMAGE})
    np.testing.assert_array_equal(y, by_onnx())


def test_a_program_leaves_it_to_the_cpu():
    program = lowered(graph(), "half_even")
    (step,) = [step for step in program.instructions if step.name == "s"]
    assert (step.op, step.inputs, step.outputs) == ("onnx", ("r",), ("s",))
    (y,) = ReferenceSession(program, operators()).run(None, {"image": IMAGE})
    np.testing.assert_array_equal(y, by_onnx())
    with pytest.raises(GraphError, match=r"without an implementation: vendor\.ops\.Shrink2"):
        ReferenceSession(program, NO_OPERATORS)


# -- running a file --------------------------------------------------------------------------


@pytest.fixture
def bundle(tmp_path):
    path = tmp_path / "m.hybrid"
    code = {"shrink.py": OURS.encode()}
    Bundle("any", lowered(graph(), "half_even"), {}, code=code).save(path)
    return path


def test_a_bundle_keeps_its_code_byte_for_byte(bundle):
    read = Bundle.load(bundle)
    assert read.code == {"shrink.py": OURS.encode()}
    assert read.to_bytes() == bundle.read_bytes()


def test_a_bundle_runs_its_code_only_when_told_to(bundle):
    with pytest.raises(GraphError, match=r"contains Python to run: shrink\.py") as caught:
        Session(bundle)
    assert "allow_code=True" in caught.value.hint
    (y,) = Session(bundle, allow_code=True).run(None, {"image": IMAGE})
    np.testing.assert_array_equal(y, by_onnx())


def test_a_bundle_with_code_takes_a_batch_too(bundle):
    path = bundle.with_name("two.hybrid")
    replace(Bundle.load(bundle), batch=2).save(path)
    (y,) = Session(path, allow_code=True).run(None, {"image": np.concatenate([IMAGE, IMAGE])})
    np.testing.assert_array_equal(y, np.concatenate([by_onnx(), by_onnx()]))


def test_its_shapes_stay_known_behind_a_pool_that_rounds_up():
    text = """<ir_version: 8, opset_import: ["" : 13, "vendor.ops" : 1]>
    agraph (float[1,1,7,7] x) => (float[1,1,1,1] y) {
        p = MaxPool<kernel_shape = [1, 1], strides = [2, 2], ceil_mode = 1>(x)
        s = vendor.ops.Shrink2<kernel_size = 2, bias = 0.5>(p)
        y = MaxPool<kernel_shape = [1, 1], strides = [2, 2], ceil_mode = 1>(s) }"""
    made = with_shapes(parse_text(text), operators()).copy().with_shapes()
    assert [shape(node.outputs[0]) for node in made.nodes()] == [
        (1, 1, 4, 4),
        (1, 1, 2, 2),
        (1, 1, 1, 1),
    ]


@pytest.mark.parametrize("suffix", [".onnx", ".hybrid"])
def test_the_caller_may_bring_the_code(bundle, suffix):
    graph().save(bundle.with_suffix(".onnx"))
    file = bundle.with_name("mine.py")
    file.write_text(OURS.replace("+ self._bias", "+ self._bias + 1"))
    session = Session(bundle.with_suffix(suffix), operators=[file])
    (y,) = session.run(None, {"image": IMAGE})
    assert (y > by_onnx()).all()


def test_an_onnx_file_without_its_operators_says_which(tmp_path):
    graph().save(tmp_path / "m.onnx")
    with pytest.raises(GraphError, match=r"without an implementation: vendor\.ops\.Shrink2"):
        Session(tmp_path / "m.onnx", allow_code=True)


def test_an_operator_file_that_is_not_there_is_refused(bundle):
    with pytest.raises(GraphError, match="no such file"):
        Session(bundle, operators=[bundle.with_name("absent.py")])
