"""Vela and IREE take the .tflite of real models, and do with it what is promised."""

from __future__ import annotations

import json

import numpy as np
import pytest

from compilers.files import MODELS, made, made_of
from frontends.test_every_real_model import feeds, graphs
from npumake.compilers.backends import BACKENDS, built
from npumake.errors import GraphError, StageError
from npumake.project.sections import Quantization
from npumake.runtime import Session
from npumake.targets.reader import read_target, target_names
from quant.test_image_tails import FED, TAILS, network
from workspaces import few

MOBILENET = "classification/mobilenet_v1_0.25_224_float.tflite"
RESNET = "classification/cifar10_resnet8_float.tflite"
ETHOS = [name for name in target_names() if name.startswith("ethos-")]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODELS.is_dir(), reason="shared/data/models is not here"),
]


@pytest.mark.parametrize("name", ETHOS)
def test_all_of_a_mobilenet_runs_on_the_npu(name):
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    compiled, members = BACKENDS["vela"](made(MOBILENET).data, read_target(name))
    estimate = json.loads(members["vela.json"])
    assert estimate["operators"]["cpu"] == 0
    assert estimate["summary"]["nn_macs"] > 40e6
    assert compiled[4:8] == b"TFL3"


@pytest.mark.parametrize("name", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_all_of_a_mobilenet_in_16_bits_runs_on_the_npu(name):
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    graph = graphs(MODELS / MOBILENET)[1]
    found = made_of(graph, feeds(graph), Quantization(types={"*": "int16"}))
    estimate = json.loads(BACKENDS["vela"](found.data, read_target(name))[1]["vela.json"])
    assert estimate["operators"]["cpu"] == 0


def test_what_vela_refuses_is_told_in_its_own_words():
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    with pytest.raises(StageError, match="ethos-u-vela fails with exit status"):
        BACKENDS["vela"](b"no model", read_target("ethos-u55-128"))


def test_iree_is_at_most_one_code_beside_litert(tmp_path):
    pytest.importorskip("iree.runtime", reason="npumake[compilers] is not installed")
    pytest.importorskip("ai_edge_litert", reason="npumake[compilers] is not installed")
    found = made(RESNET)
    (tmp_path / "m.tflite").write_bytes(found.data)
    data = built(found.program, found.graph, read_target("iree-cpu"), {})
    (tmp_path / "m.vmfb").write_bytes(data)
    native = Session(tmp_path / "m.vmfb", allow_code=True)
    litert = Session(tmp_path / "m.tflite")
    assert native.input_names == litert.input_names
    assert native.output_names == litert.output_names
    for seed in range(4):
        x = np.random.default_rng(seed).normal(0, 40, (1, 32, 32, 3)).astype(np.float32)
        (y,), (wanted,) = (s.run(None, {s.input_names[0]: x}) for s in (native, litert))
        assert np.abs(y - wanted).max() <= 1 / 256


@pytest.mark.parametrize(
    "cpu", few(["iree-cortex-a53", "iree-cortex-a55"], "iree-cortex-a55".__eq__)
)
def test_a_file_for_another_processor_is_refused_here(tmp_path, cpu):
    pytest.importorskip("iree.compiler", reason="npumake[compilers] is not installed")
    found = made("anomaly/ad01_fp32.tflite")
    (tmp_path / "m.vmfb").write_bytes(built(found.program, found.graph, read_target(cpu), {}))
    with pytest.raises(GraphError, match="IREE refuses the file"):
        Session(tmp_path / "m.vmfb", allow_code=True)


@pytest.mark.parametrize("types", [{}, {"*": "int16"}], ids=["int8", "int16"])
@pytest.mark.parametrize("name", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("tail", TAILS)
def test_all_of_the_tail_of_an_image_runs_on_the_npu(tail, name, types):
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    found = made_of(network(tail), FED, Quantization(types=types))
    estimate = json.loads(BACKENDS["vela"](found.data, read_target(name))[1]["vela.json"])
    assert estimate["operators"]["cpu"] == 0
