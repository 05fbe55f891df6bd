"""A Caffe network: three forms, phases, names, and one error per cause."""

import sys
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from frontends.nets import caffemodel, held, inputs, read, run, varint
from npumake.errors import GraphError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(1, 3, 6, 6)).astype(np.float32)
WEIGHTS = {
    "c": [RNG.normal(size=s).astype(np.float32) for s in ((4, 3, 3, 3), (4,))],
    "f": [RNG.normal(size=s).astype(np.float32) for s in ((5, 36), (5,))],
}
INPUT = 'input: "x" input_dim: 1 input_dim: 3 input_dim: 6 input_dim: 6\n'
CURRENT = """
layer { name: "c" type: "Convolution" bottom: "x" top: "c"
    convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
layer { name: "p" type: "Pooling" bottom: "c" top: "p"
    pooling_param { pool: AVE kernel_size: 2 stride: 2 engine: CUDNN } }
layer { name: "f" type: "InnerProduct" bottom: "p" top: "f"
    inner_product_param { num_output: 5 } }
layer { name: "s" type: "Softmax" bottom: "f" top: "s" }
"""
V1 = """
layers { name: "c" type: CONVOLUTION bottom: "x" top: "c" blobs_lr: 1
    convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }
layers { name: "r" type: RELU bottom: "c" top: "c" }
layers { name: "p" type: POOLING bottom: "c" top: "p"
    pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layers { name: "f" type: INNER_PRODUCT bottom: "p" top: "f"
    inner_product_param { num_output: 5 } }
layers { name: "s" type: SOFTMAX bottom: "f" top: "s" }
"""
V0 = """
layers { layer { name: "pad" type: "padding" pad: 1 } bottom: "x" top: "pad" }
layers { layer { name: "c" type: "conv" num_output: 4 kernelsize: 3 blobs_lr: 1. }
    bottom: "pad" top: "c" }
layers { layer { name: "r" type: "relu" } bottom: "c" top: "c" }
layers { layer { name: "p" type: "pool" pool: AVE kernelsize: 2 stride: 2 } bottom: "c" top: "p" }
layers { layer { name: "f" type: "innerproduct" num_output: 5 } bottom: "p" top: "f" }
layers { layer { name: "s" type: "softmax" } bottom: "f" top: "s" }
"""


def refused(text, weights=None):
    with pytest.raises(GraphError) as caught:
        read(text, caffemodel(WEIGHTS) if weights is None else weights)
    return caught.value


def layer(type_, text="", bottom="x", top="y", name="it"):
    return f'layer {{ name: "{name}" type: "{type_}" bottom: "{bottom}" top: "{top}" {text} }}\n'


@pytest.mark.parametrize("net", [CURRENT, V1, V0], ids=["current", "V1", "V0"])
@pytest.mark.parametrize("form", ["current", "V1", "V0"])
def test_the_three_forms_are_one_network(net, form):
    graph = read(INPUT + net, caffemodel(WEIGHTS, form))
    same = read(INPUT + CURRENT, caffemodel(WEIGHTS))
    assert graph.to_bytes() == same.to_bytes()
    assert run(graph, [X])[0].sum() == pytest.approx(1, abs=1e-6)


def test_nodes_are_called_after_layers_and_tensors_after_blobs():
    graph = read(INPUT + CURRENT, caffemodel(WEIGHTS))
    named = {str(node.name): str(node.outputs[0].name) for node in graph.nodes()}
    of_layers = {name: named[name] for name in "crpfs"}
    assert of_layers == {"c": "c_before_r", "r": "c", "p": "p", "f": "f", "s": "s"}
    assert [str(value.name) for value in graph.outputs] == ["s"]


def test_an_input_that_is_rewritten_in_place_keeps_its_name():
    text = INPUT + layer("ReLU", top="x", name="r") + layer("TanH")
    (got,) = run(read(text, caffemodel(WEIGHTS)), [X])
    np.testing.assert_allclose(got, np.tanh(X.clip(0)), atol=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        INPUT,
        'input: "x" input_shape { dim: 1 dim: 3 dim: 6 dim: 6 }',
        'input: "x" input_shape { dim: [1, 3, 6, 6] }',
        inputs(X.shape).replace("x0", "x"),
    ],
)
def test_an_input_is_declared_in_three_ways(given):
    graph = read(given + layer("ReLU"), caffemodel(WEIGHTS))
    assert [str(value.name) for value in graph.inputs] == ["x"]
    assert run(graph, [X])[0].tolist() == X.clip(0).tolist()


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("include { phase: TRAIN }", False),
        ("include { phase: TEST }", True),
        ("exclude { phase: TEST }", False),
        ("exclude { phase: TRAIN }", True),
        ("include { phase: TRAIN } include { phase: TEST }", True),
        ("include { min_level: 1 }", False),
        ('include { stage: "deploy" }', False),
        ('include { not_stage: "deploy" }', True),
    ],
)
def test_only_layers_of_the_test_phase_are_kept(rule, kept):
    text = INPUT + layer("ReLU") + layer("TanH", rule, bottom="y", top="z")
    made = [node.op_type for node in read(text, caffemodel(WEIGHTS)).nodes()]
    assert made == ["Relu", "Tanh"] if kept else ["Relu"]


def test_unknown_layers_are_named_all_at_once():
    text = INPUT + layer("Accuracy", name="accuracy", top="a") + layer("ReLU") + layer("Python")
    error = refused(text)
    assert error.what == (
        "not supported: layer name=accuracy type=Accuracy, layer name=it type=Python"
    )
    assert error.where == "net.prototxt"
    assert "Convolution" in error.hint


def test_missing_weights_name_the_layer():
    error = refused(INPUT + CURRENT, caffemodel({"c": WEIGHTS["c"], "ff": WEIGHTS["f"]}))
    assert error.what == "no weights for layer `f`"
    assert (error.where, error.hint) == ("net.caffemodel", "did you mean `ff`?")


def test_weights_of_another_shape_are_refused():
    error = refused(INPUT + CURRENT, caffemodel(WEIGHTS | {"f": [np.zeros((5, 35)), np.zeros(5)]}))
    assert error.what == ("a weight blob of layer `f` has shape [5, 35]; the network needs [5, 36]")


def test_too_few_blobs_are_refused():
    error = refused(INPUT + CURRENT, caffemodel(WEIGHTS | {"f": WEIGHTS["f"][:1]}))
    assert error.what == "layer `f` has 1 weight blobs; the network needs 2"


def test_a_blob_that_holds_less_than_its_shape_is_refused():
    short = held(7, held(1, varint(5) + varint(36))) + held(5, b"\0" * 64)
    data = caffemodel({"c": WEIGHTS["c"]}) + held(
        100, held(1, b"f") + held(7, short) + held(7, held(7, held(1, varint(5))))
    )
    assert "holds 16 values, not the 180" in refused(INPUT + CURRENT, data).what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "not a Caffe network: it has no layers"),
        (INPUT, "not a Caffe network: it has no layers"),
        (CURRENT, "layer `c` reads blob `x`, which no layer before it writes"),
        (INPUT + layer("ReLU", bottom="z"), "layer `it` reads blob `z`, which no layer before it"),
        (INPUT + layer("ReLU") + layer("TanH"), "blob `y` is written twice, again by `it`"),
        (INPUT + CURRENT + V1, "the network mixes `layers` with `layer`"),
        ('input: "x"' + layer("ReLU"), "the network has 1 inputs and 0 shapes for them"),
        (INPUT.replace("6", "0") + layer("ReLU"), "input `x` has shape [1, 3, 0, 0]"),
        (INPUT.replace("6", "4000000000") + layer("ReLU"), "input `x` has shape [1, 3, 4000"),
        (INPUT + INPUT + layer("ReLU"), "two inputs of the network are called `x`"),
        (inputs(X.shape), "the network computes nothing"),
        (
            INPUT + layer("Convolution", "convolution_param { num_output: 4 }"),
            "layer `it` (Convolution) has kernel_size [] for 2 axes",
        ),
        (
            INPUT
            + layer(
                "Convolution", "convolution_param { num_output: 4000000000 kernel_size: 9999 }"
            ),
            "no weights for layer `it`",
        ),
        (
            INPUT + layer("Pooling", "pooling_param { kernel_size: 9 }"),
            "layer `it` (Pooling) gives a blob of shape [1, 3, -2, -2]: its input is too small",
        ),
        (
            INPUT + layer("Upsample", "upsample_param { scale: 99999 }"),
            "layer `it` (Upsample) gives a blob of shape [1, 3, 599994, 599994]: more than Caffe",
        ),
        (
            INPUT + layer("Softmax", "softmax_param { axis: 4 }"),
            "layer `it` (Softmax) has axis 4, but its input has 4 dimensions",
        ),
        (
            INPUT + layer("Reshape", "reshape_param { shape { dim: 7 dim: -1 } }"),
            "layer `it` (Reshape) cannot make [7, -1] of [1, 3, 6, 6]",
        ),
        (INPUT + layer("Eltwise"), "layer `it` (Eltwise) reads 1 blobs, expected 2 to"),
    ],
)
def test_a_wrong_network_is_one_error(text, what):
    assert refused(text).what.startswith(what)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("layer {\n  name: 3\n}", 2),
        ('layer {\n  type: "ReLU"\n', 2),
        ("layers {\n  type: FANCY\n}", 2),
        ("layer {\n" * 500, 33),
        ("x <\n" * 100_000, 33),
    ],
)
def test_text_that_is_no_network_is_an_error_with_its_line(text, line):
    assert refused(text).where.line == line


@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"not a model\n" * 9, bytes(range(256))])
def test_weights_that_are_none_are_one_error(data):
    assert refused(INPUT + CURRENT, data).where == "net.caffemodel"


def test_truncated_weights_are_one_error_wherever_they_end():
    whole = caffemodel(WEIGHTS)
    for end in range(0, len(whole) - 1, 7):
        assert refused(INPUT + CURRENT, whole[:end]).where == "net.caffemodel"


def test_truncated_text_is_one_error_or_a_smaller_network():
    for end in range(len(INPUT), len(INPUT + CURRENT), 5):
        with suppress(GraphError):
            assert read((INPUT + CURRENT)[:end], caffemodel(WEIGHTS)).outputs


def test_layers_of_one_name_are_told_apart():
    text = INPUT + layer("ReLU", top="x") + layer("TanH", bottom="x", top="x")
    graph = read(text + layer("AbsVal", bottom="x", top="x_after_it"), caffemodel(WEIGHTS))
    assert [str(node.name) for node in graph.nodes()] == ["it", "it_1", "it_2"]
    assert [str(value.name) for value in graph.outputs] == ["x_after_it"]
    np.testing.assert_allclose(run(graph, [X])[0], np.tanh(X.clip(0)), atol=1e-6)


@pytest.mark.slow
def test_of_a_hundred_thousand_wrong_layers_twenty_are_told():
    error = refused(INPUT + "layer{type:'Q'}" * 100_000)
    assert "and 99980 more" in error.what


HUGE = {
    "layers": lambda n: INPUT + "layer{type:'Q'}" * n,
    "inputs": lambda n: 'input: "x"' * n,
    "bottoms": lambda n: INPUT + layer("Eltwise", 'bottom: "x"' * n),
    "one name": lambda n: INPUT + layer("ReLU", top="x") * n,
    "dimensions": lambda n: (
        INPUT + layer("Reshape", "reshape_param { shape {" + f"dim: {2**63 - 1} " * n + "} }")
    ),
    "slices": lambda n: INPUT + layer("Slice", "slice_param {" + "slice_point: 1 " * n + "}"),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_twice_as_much_text_is_twice_as_much_work(text: Callable[[int], str]):
    once, twice = (calls_of(text(count)) for count in (1_000, 2_000))
    assert twice < 2.5 * once


def calls_of(text: str) -> int:
    """The functions called to read it: the same on any machine, and however busy that is."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        with suppress(GraphError):
            read(text, caffemodel(WEIGHTS))
    finally:
        sys.setprofile(None)
    return calls


def test_long_text_is_not_parsed():
    assert "longer than 4 MiB" in refused("#" * (5 << 20)).what
