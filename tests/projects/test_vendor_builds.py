"""Vendors' YAML builds as it is: the full examples of their guides, and what their tables vary."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from custom.files import MODEL as CUSTOM_MODEL
from custom.files import VENDOR as CUSTOM_OPERATOR
from dialect_cases import HB_COMPILE, HB_MAPPER, SYNAP, changed
from npumake.graph import Graph, array, parse_text
from vendor_models import SAMPLES, model, write_samples
from workspaces import lay_out_none

pytestmark = pytest.mark.slow
Out = Callable[[str], Path]

SMALL = 32
NOTHING: Mapping[str, Any] = {}
HB = {"remove_node_name": None, "remove_node_type": None, "output_nodes": None}
MAPPER = {**HB, "onnx_model": "net.onnx", "input_shape": f"1x3x{SMALL}x{SMALL}"}
COMPILE = {
    **HB,
    "onnx_model": "net.onnx",
    "input_name": "data",
    "input_shape": f"1x3x{SMALL}x{SMALL}",
    "cal_data_dir": "./normalized",
}
INT16 = {"ON": "BPU", "InputType": "int16", "OutputType": "int16"}
QUANT_CONFIG = {
    "model_config": {
        "all_node_type": "int8",
        "model_output_type": "int16",
        "activation": {"calibration_type": ["max", "kl"], "max_percentile": [0.99995, 1.0]},
    },
    "op_config": {"Add": {"InputType": "int16", "OutputType": "int16"}},
    "subgraph_config": {"head": {"inputs": ["pool"], "outputs": ["fc6"], "qtype": "int16"}},
    "node_config": {"conv1": {"qtype": "int8"}, "fc6": {"qtype": "float16"}},
}

# case: what differs from the small example
MAPPER_CASES: dict[str, dict[str, Any]] = {
    "node-info": {
        "node_info": {"conv2": INT16, "softmax": {"ON": "BPU"}, "add1": {"InputType1": "int16"}},
        "optimization": ["set_Softmax_input_int8,set_Softmax_output_int8"],
        "calibration_type": "default",
        "per_channel": True,
    },
    "units": {
        "march": "bernoulli2",
        "run_on_cpu": "fc6; pool",
        "run_on_bpu": "softmax",
        "optimization": "set_model_output_int8",
        "calibration_type": "mix",
    },
    "data-type": {
        "march": "bayes",
        "set_node_data_type": "add1:int16",
        "optimization": "run_fast",
        "calibration_type": "kl",
    },
    "all-int16": {"optimization": "set_all_nodes_int16,set_model_output_int16"},
    "pictures": {"preprocess_on": True, "cal_data_dir": "./pictures"},
    "skip": {"calibration_type": "skip", "cal_data_dir": None},
    "nv12": {"input_type_rt": "nv12", "input_layout_rt": None, "input_space_and_range": "regular"},
}
COMPILE_CASES: dict[str, dict[str, Any]] = {
    "quant-config": {"quant_config": QUANT_CONFIG},
    "quant-file": {"quant_config": "./quant.json"},
    "node-text": {"node_info": "conv2:int16;add1:int16", "calibration_type": "default"},
    "no-folder": {"cal_data_dir": None, "calibration_type": None},
    "layerwise": {"quant_config": {"model_config": {"layerwise_search": {"metric": "mse"}}}},
}
FEATURES = {
    **{"input_name": "image", "input_shape": "1x1x8x8", "input_source": None},
    **{"input_type_train": "featuremap", "input_type_rt": "featuremap"},
    **{"norm_type": "no_preprocess", "input_layout_rt": "NCHW"},
}
# As training with fake quantization exports it, ending in a Gemm.
TRAINED_SCALES = {"s": 0.03125, "t": 0.0625, "u": 0.25}
TRAINED = """a (float[1,1,8,8] image) => (float[1,4] y)
    <float s = {0.03125}, float t = {0.0625}, float u = {0.25}, float v = {0.0078125}, int8 z = {0},
     float[2,1,3,3] k = {1,0,-1,0.5,0,0.25,-1,0.5,1,-1,1,0.75,-0.5,1,0,0.25,0,-1},
     float[4,2] m = {1,-1,0.5,0.25,-0.75,1,0.125,-0.5}> {
    qi = QuantizeLinear(image, s, z)  di = DequantizeLinear(qi, s, z)
    qk = QuantizeLinear(k, v, z)  dk = DequantizeLinear(qk, v, z)
    c = Conv(di, dk)  r = Relu(c)  qr = QuantizeLinear(r, t, z)  dr = DequantizeLinear(qr, t, z)
    p = GlobalAveragePool(dr)  qp = QuantizeLinear(p, t, z)  dp = DequantizeLinear(qp, t, z)
    f = Flatten(dp)  qf = QuantizeLinear(f, t, z)  df = DequantizeLinear(qf, t, z)
    qm = QuantizeLinear(m, v, z)  dm = DequantizeLinear(qm, v, z)
    g = Gemm<transB=1>(df, dm)  qg = QuantizeLinear(g, u, z)  y = DequantizeLinear(qg, u, z) }"""
SYNAP_SMALL = f"inputs:\n  - {{name: data, shape: [1, 3, {SMALL}, {SMALL}], scale: 255}}\n"
DATASET = "quantization:\n  dataset: [sample/*.jpg]\n"
SYNAP_CASES = {
    "float16": SYNAP_SMALL,
    "mixed": f"{SYNAP_SMALL}{DATASET}  data_type: {{'*': int8, conv2...: int16, fc6: float16}}\n",
    "int16": f"{SYNAP_SMALL}{DATASET}  data_type: int16\n  algorithm: moving_average\n",
    "auto": f"{SYNAP_SMALL}{DATASET}  algorithm: auto\n  mode: full\n",
    "kl": f"{SYNAP_SMALL}{DATASET}  algorithm: kl_divergence\n  scheme: asymmetric_affine\n",
    "ssd": f"""{SYNAP_SMALL}{DATASET}outputs:
  - name: add1
    dequantize: true
    format: tflite_detection_boxes y_scale=10 x_scale=10 h_scale=5 w_scale=5 anchors=${{ANCHORS}}
  - name: softmax
    dequantize: true
    format: per_class_confidence class_index_base=-1
""",
    "delegates": f"{SYNAP_SMALL}{DATASET}delegate: {{'*': cpu, conv1: npu, conv2: npu}}\n",
}


def write(
    root: Path, name: str, dialect: str, text: str, beside: Mapping[str, Any] = NOTHING
) -> Path:
    """A project that speaks a dialect and nothing else."""
    folder = root / "projects" / name
    (folder / "vendor").mkdir(parents=True)
    (folder / "vendor" / "config.yaml").write_text(text)
    said = {"dialect": dialect, "config": "vendor/config.yaml", **beside}
    (folder / "project.yaml").write_text(json.dumps(said))
    return folder / "vendor"


def write_full(root: Path) -> None:
    """The guides' full examples, each key as it is there."""
    data = write(root, "full-mapper", "hb_mapper", HB_MAPPER)
    tail = (("fc7", "Relu"), ("prob", "Transpose"))
    (data / "mobilenetv1.onnx").write_bytes(model("data", 224, "first", tail))
    write_samples(data, 224)
    data = write(root, "full-compile", "hb_compile", HB_COMPILE)
    (data / "resnet50.onnx").write_bytes(model("image", 224, "fc", (("prob", "Softmax"),)))
    write_samples(data, 224)
    shutil.rmtree(data / "calibration_data")
    (data / "normalized").rename(data / "calibration_data")
    text = SYNAP.replace("[1, 224, 224, 3]", "[1, 3, 224, 224]").replace("[1920, 1080]", "[96, 64]")
    beside = {"model": {"path": "vendor/net.onnx"}, "targets": ["vs680"]}
    data = write(root, "full-synap", "synap", text.replace("../../sample", "sample"), beside)
    last = (("MobilenetV1/Predictions/Reshape_1", "Softmax"),)
    (data / "net.onnx").write_bytes(model("input", 224, "first", last))
    write_samples(data, 224)


def write_small(root: Path) -> None:
    network = model("data", SMALL, "first", (("softmax", "Softmax"),))
    beside = {"model": {"path": "vendor/net.onnx"}, "targets": ["sl1680"]}
    folders = [
        *(
            write(root, f"mapper-{name}", "hb_mapper", changed(HB_MAPPER, {**MAPPER, **case}))
            for name, case in MAPPER_CASES.items()
        ),
        *(
            write(root, f"compile-{name}", "hb_compile", changed(HB_COMPILE, {**COMPILE, **case}))
            for name, case in COMPILE_CASES.items()
        ),
        *(
            write(root, f"synap-{name}", "synap", text, beside)
            for name, text in SYNAP_CASES.items()
        ),
    ]
    for folder in folders:
        (folder / "net.onnx").write_bytes(network)
        (folder / "quant.json").write_text(json.dumps(QUANT_CONFIG, indent="\t"))
        write_samples(folder, SMALL)


def write_custom(root: Path) -> None:
    changes = {
        **MAPPER,
        **FEATURES,
        **{"op_register_files": "shrink.py", "custom_op_dir": "./ops"},
    }
    data = write(root, "mapper-custom", "hb_mapper", changed(HB_MAPPER, changes))
    parse_text(CUSTOM_MODEL).save(data / "net.onnx")
    (data / "ops").mkdir()
    (data / "ops" / "shrink.py").write_text(CUSTOM_OPERATOR)
    write_features(data)


def write_trained(root: Path) -> None:
    changes = {**MAPPER, **FEATURES, "calibration_type": "load"}
    data = write(root, "mapper-load", "hb_mapper", changed(HB_MAPPER, changes))
    parse_text(TRAINED).save(data / "net.onnx")
    write_features(data)


def write_features(data: Path) -> None:
    (data / "calibration_data").mkdir()
    rng = np.random.default_rng(1)
    for n in range(SAMPLES):
        image = rng.normal(size=(1, 1, 8, 8)).astype(np.float32)
        image.tofile(data / "calibration_data" / f"{n}.bin")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Out:
    """The folder of a project's artifacts, by its name; it is built when it is first asked for."""
    workspace = lay_out_none(tmp_path_factory.mktemp("vendors") / "w")
    write_full(workspace.root)
    write_small(workspace.root)
    write_custom(workspace.root)
    write_trained(workspace.root)

    @cache
    def folder(name: str) -> Path:
        run = workspace.npumake("build", name, check=False)
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
        return workspace.root / "projects" / name / "out"

    return folder


def rows(out: Path) -> dict[str, tuple[str, str]]:
    """By trained node of a project, where it runs and the type of what it makes."""
    (file,) = out.glob("comparison.*.json")
    found = json.loads(file.read_text())["rows"]
    return {row["node"]: (row["on"], row["dtype"]) for row in found}


FULL = {"full-mapper": "mobilenetv1.rdk-x5", "full-compile": "resnet50_224x224_nv12.nash-e"}


@pytest.mark.parametrize("name", FULL)
def test_the_full_example_of_a_guide_is_built(out: Out, name: str):
    assert (out(name) / f"{FULL[name]}.hybrid").is_file()


def test_the_full_metafile_is_built(out: Out):
    (found,) = out("full-synap").glob("*.vs680.hybrid")
    assert found.is_file()


@pytest.mark.parametrize("name", ["mapper-pictures", "mapper-nv12", "synap-auto", "synap-ssd"])
def test_a_variation_of_an_example_is_built(out: Out, name: str):
    assert [*out(name).glob("*.hybrid")]


# project: the type of what these nodes make; "CPU" for what runs there, in float. A Conv and its
# Add are one row for hb_mapper
DOES: dict[str, dict[str, str]] = {
    "mapper-node-info": {"conv1": "int16", "conv2": "int16", "softmax": "CPU"},
    "mapper-units": {"pool": "CPU", "fc6": "CPU", "conv2": "int8", "softmax": "CPU"},
    "mapper-data-type": {"conv1": "int16", "pool": "int16", "softmax": "CPU"},
    "mapper-all-int16": {"preprocess_data": "int16", "softmax": "CPU"},
    "mapper-skip": {"conv1": "int8", "softmax": "CPU"},
    "mapper-custom": {"c": "int8", "s": "CPU", "y": "int8"},
    "compile-quant-config": {"conv1": "int8", "add1": "int16", "pool": "int16", "fc6": "float16"},
    "compile-quant-file": {"conv1": "int8", "add1": "int16", "pool": "int16", "fc6": "float16"},
    "compile-node-text": {"conv2": "int16", "add1": "int16", "softmax": "int8"},
    "compile-no-folder": {"conv1": "int8"},
    "synap-float16": {"conv1": "float16", "add1": "float16", "fc6": "float16"},
    "synap-mixed": {"conv1": "int8", "conv2": "int8", "add1": "int16", "fc6": "float16"},
    "synap-int16": {"preprocess_data": "int16", "softmax": "int16"},
    "synap-delegates": {"conv1": "uint8", "conv2": "uint8", "add1": "CPU", "fc6": "CPU"},
}


@pytest.mark.parametrize("name", DOES)
def test_what_is_asked_of_nodes_is_what_they_do(out: Out, name: str):
    found = {
        node: "CPU" if on == "CPU" else types.partition("/")[2]
        for node, (on, types) in rows(out(name)).items()
    }
    assert DOES[name].items() <= found.items()


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("mapper-node-info", "modelwise"),
        ("mapper-units", "mix"),
        ("mapper-skip", "skip"),
        ("compile-no-folder", "skip"),
        ("compile-layerwise", "mix"),
        ("synap-int16", "moving_average"),
        ("synap-kl", "kl"),
    ],
)
def test_ranges_are_found_as_the_vendor_s_file_says(out: Out, name: str, method: str):
    (file,) = out(name).glob("recipe.*.json")
    found = json.loads(file.read_text())
    searched = bool(found["trials"])
    assert (found["method"], searched) == (method, False) or (searched and method == "modelwise")


def test_a_model_of_float16_alone_has_no_quantized_tensor(out: Out):
    found = Graph.load(out("synap-float16") / "quantized.sl1680.onnx")
    assert not found.nodes("QuantizeLinear", "DequantizeLinear")
    assert found.nodes("Cast")


def test_a_file_of_its_own_says_what_the_same_text_inside_says(out: Out):
    inside, outside = (
        (out(f"compile-{name}") / "quantized.nash-e.onnx").read_bytes()
        for name in ("quant-config", "quant-file")
    )
    assert inside == outside


def test_a_trained_model_keeps_its_scales_and_its_gemm_is_a_convolution(out: Out):
    folder = out("mapper-load")
    found = Graph.load(folder / "quantized.rdk-x5.onnx")
    scales = {float(array(node.inputs[1])) for node in found.nodes("QuantizeLinear")}
    assert scales == set(TRAINED_SCALES.values())
    assert [str(node.name) for node in found.nodes("Conv")] == ["c", "g"]
    assert not found.nodes("Gemm")
    outputs = json.loads((folder / "comparison.rdk-x5.json").read_text())["outputs"]
    assert outputs[0]["cosine"] > 0.99
