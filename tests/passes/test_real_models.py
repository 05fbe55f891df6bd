"""Upgraded and optimized, real trained models compute what their files do, and know where each
node comes from.

The models lie beside the repository, not in it; where they are absent this is skipped.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from workspaces import shared_data

from pipeline.engine.ort import OrtSession
from pipeline.frontends import read_model
from pipeline.graph import Graph, dtype, origin, shape, upgraded
from pipeline.passes import PASSES, optimized

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
    "silero_vad_16k_op15": (72, 34),
    "squeezenet1.1_winml_fp16": (66, 65),
    "squeezenet1.1_winml_fp32_DERIVED": (66, 65),
    "sscma_yolov5tiny_face_96": (185, 185),
    "ultraface_slim320": (186, 113),
    "ultraface_slim320_rawhead": (168, 95),
    "yolox_person_192": (369, 369),
    "yunet_n_320_320": (115, 109),
}
SAMPLE_RATE = 16000  # the only number among the inputs that is not just any number
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


def feeds(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    drawn = {str(v.name): rng.normal(size=shape(v)).astype(dtype(v)) for v in graph.inputs}
    return drawn | ({"sr": np.array(SAMPLE_RATE)} if "sr" in drawn else {})


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (x.astype(np.float64).ravel() for x in (a, b))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@every_file
def test_an_optimized_model_computes_what_its_file_does(file):
    graph, better = graphs(file)
    before = OrtSession(file.read_bytes()).run(None, feeds(graph))
    after = OrtSession(better.to_bytes()).run(None, feeds(graph))
    assert [a.shape for a in after] == [b.shape for b in before]
    assert min(map(cosine, after, before)) >= 0.999999


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
