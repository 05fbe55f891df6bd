"""Trained models: their multiply-accumulates, and how tight their memory plan is. Skipped where
they are not."""

import json
from functools import cache

import pytest

from compilers.files import made
from npumake.bundle.memory import planned
from npumake.bundle.program import Program
from npumake.compilers.vela import ESTIMATE, with_vela
from npumake.perf.layers import layers_of
from npumake.targets.reader import read_target
from workspaces import shared_data

MODELS = shared_data() / "models"
MOBILENET = "classification/mobilenet_v1_0.25_224_float.tflite"
FILES = (MOBILENET, "classification/vww_96_float.tflite", "detection/yolox_person_192.onnx")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODELS.is_dir(), reason="shared/data/models is not here"),
]


@cache
def program(name: str) -> Program:
    return made(name).program


def test_mobilenet_has_the_products_its_authors_count():
    """Howard et al. 2017, table 7: 41 million for 0.25 MobileNet-224."""
    assert round(sum(layer.macs for layer in layers_of(program(MOBILENET), None)) / 1e6) == 41


def test_vela_counts_the_same_products():
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    target = read_target("ethos-u65-256")
    _, members = with_vela(made(MOBILENET).data, target)
    told = {
        layer["Name"]: layer["MAC Count"]
        for layer in json.loads(members[ESTIMATE])["layers"]
        if layer["NNG Operator"] in ("Conv2D", "DepthwiseConv2D")
    }
    ours = {s.outputs[0]: s for s in program(MOBILENET).instructions if s.op == "conv"}
    counted = {layer.name: layer.macs for layer in layers_of(program(MOBILENET), None)}
    compared = {name: counted[ours[name].name] for name in told if name in ours}
    assert len(compared) >= 27
    assert compared == {name: told[name] for name in compared}


@pytest.mark.parametrize("name", FILES)
def test_the_memory_plan_is_the_least_there_can_be(name):
    memory = planned(program(name))
    assert memory.peak == memory.live_peak
