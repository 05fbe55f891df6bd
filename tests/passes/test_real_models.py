"""Optimized, real trained models are as small as ever and know where each node comes from.

That they compute what their files do is in frontends/test_every_real_model.py.

The models lie beside the repository, not in it; where they are absent this is skipped.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from npumake.frontends import read_model
from npumake.graph import Graph, origin, upgraded
from npumake.passes import PASSES, optimized
from workspaces import shared_data

FILES = sorted(shared_data().joinpath("models").rglob("*.onnx"))
SHAPES = {  # where a model leaves dimensions open
    "ppocr_mobile_v2_cls": {"x": (1, 3, 48, 192)},
    "silero_vad_16k_op15": {"input": (1, 576), "state": (2, 1, 128)},
}
LEFT = {  # nodes of the file, and of the optimized graph
    "deeplabv3_mnv2_257": (108, 108),
    "fastestdet_352": (211, 210),
    "mnist_cntk": (12, 8),
    "ppocr_mobile_v2_cls": (221, 125),
    "silero_vad_16k_op15": (72, 31),
    "squeezenet1.1_winml_fp16": (66, 65),
    "squeezenet1.1_winml_fp32_DERIVED": (66, 65),
    "sscma_yolov5tiny_face_96": (185, 191),
    "ultraface_slim320": (186, 113),
    "ultraface_slim320_rawhead": (168, 95),
    "yolox_person_192": (369, 369),
    "yunet_n_320_320": (115, 109),
}
# What computes shapes and constants, which are known beforehand.
KNOWN_BEFOREHAND = frozenset(
    [
        "Cast",
        "Concat",
        "ConstantOfShape",
        "Equal",
        "Gather",
        "Mul",
        "Reshape",
        "Shape",
        "Slice",
        "Squeeze",
        "Sub",
        "Transpose",
        "Unsqueeze",
    ]
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILES, reason="shared/data/models is not here"),
]
every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


@cache
def graphs(file: Path) -> tuple[Graph, Graph]:
    """What the file holds, its shapes fixed, and the optimized graph."""
    graph = read_model(file.read_bytes(), file.name)
    for value in graph.inputs:
        if dims := SHAPES.get(file.stem, {}).get(str(value.name)):
            graph.set_input_shape(value, dims)
    return graph, optimized(upgraded(graph).with_shapes())


@every_file
def test_as_many_nodes_are_left_as_ever(file):
    graph, better = graphs(file)
    if file.stem in LEFT:
        assert (len(graph.nodes()), len(better.nodes())) == LEFT[file.stem]
    assert all(run_pass(better.copy().with_shapes()) == 0 for run_pass in PASSES)


@every_file
def test_every_node_that_computes_is_the_origin_of_some_node(file):
    graph, better = graphs(file)
    named = {name for node in better.nodes() for name in origin(node)}
    trained = {str(node.name): node.op_type for node in graph.nodes()}
    assert named <= trained.keys()
    lost = Counter(trained[name] for name in trained.keys() - named)
    assert lost.keys() <= KNOWN_BEFOREHAND
    assert all(origin(node) for node in better.nodes())
