"""Trained models of other people: a right build has no fault, and a fault is named first.

A model takes up to half a minute, so CI has four of them; NPUMAKE_EVERY=1 has all.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

import pytest

from npumake.data.samples import Samples
from npumake.debug.diagnosis.rank_causes import rank_causes
from npumake.debug.sensitivity import ModelUnderTest
from npumake.quant.qdq.integers import with_integer_weights
from workspaces import REPO, shared_data

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shared_data().is_dir(), reason="shared/data is not here"),
]


def benchmark() -> ModuleType:
    """benchmarks/faults.py, which draws the faults."""
    folder = str(REPO / "benchmarks")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return import_module("faults")


FAULTS = benchmark()
CHIPS = tuple(FAULTS.TARGETS)
SMALL = (
    "classification/cifar10_resnet8_float.tflite",
    "classification/vww_96_int8.tflite",
    "detection/caffe_mtcnn_det1.caffemodel",
    "detection/sscma_yolov5tiny_face_96.onnx",
)
RIGHT = [path for path in FAULTS.MODELS if path in SMALL or os.environ.get("NPUMAKE_EVERY")]
FEW = ["classification/vww_96_int8.tflite"]
if os.environ.get("NPUMAKE_EVERY"):
    FEW.append("classification/vww_96_float.tflite")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("path", RIGHT)
def test_a_right_build_has_no_fault(path: str, chip: str) -> None:
    graph = FAULTS.float_graph(path)
    feeds = FAULTS.feeds(path, graph)
    names = tuple(map(str, range(len(feeds))))
    samples = Samples(names, feeds.__getitem__)
    examined = ModelUnderTest(FAULTS.calibrated(graph, feeds, chip), samples, data_num=2)
    assert [one for one in rank_causes(examined) if one.is_fault] == []


@pytest.mark.parametrize("path", RIGHT)
def test_no_fault_where_weights_and_biases_are_integers(path: str) -> None:
    graph = FAULTS.float_graph(path)
    feeds = FAULTS.feeds(path, graph)[:4]
    few = Samples(tuple(map(str, range(4))), feeds.__getitem__)
    whole = with_integer_weights(FAULTS.calibrated(graph, feeds, CHIPS[0]))
    assert [one for one in rank_causes(ModelUnderTest(whole, few)) if one.is_fault] == []


@pytest.mark.parametrize("path", FEW)
def test_a_fault_is_named_first(path: str) -> None:
    found = list(FAULTS.hits(path, "rdk-x5", 2))
    assert len({kind for kind, *_ in found}) >= 5
    assert [told for _, rank, told in found if rank] == []
