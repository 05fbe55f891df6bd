"""A vendor's file on the border and the unit of nodes: what is built, told and handed back.

The graphs of the vendors' tools are read where they lie, beside the repository."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml

from cli.vendors.test_drop_in import npumake
from npumake.bundle.archive import Bundle
from npumake.cli.vendors.fast_perf import picture_layout
from npumake.runtime.border import deleted_nodes, removable
from workspaces import REPO

SMALL = Path(os.environ.get("NPUMAKE_SHARED", REPO.parent / "shared")) / "oracle" / "small"
needs_oracle = pytest.mark.skipif(not SMALL.is_dir(), reason="shared/oracle is not here")
WEIGHTS = {"w0": (8, 3, 3, 3), "w1": (4, 8, 1, 1)}
TAILS = {
    "conv": "y = Conv <pads=[0,0,0,0]> (r, w1)",
    "nhwc": "c = Conv(r, w1)  y = Transpose <perm=[0,2,3,1]> (c)",
    "softmax": "c = Conv(r, w1)  y = Softmax <axis=-1> (c)",
}


@pytest.fixture
def here(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path_factory.getbasetemp() / "vendor_border"))
    monkeypatch.setenv("PYTHONPATH", str(REPO / "pipeline"))
    return tmp_path


def network(tail: str, nhwc: bool = False) -> bytes:
    """Conv, Relu and a tail, on a picture of 16 x 16; the nodes are called by their operators."""
    rng = np.random.default_rng(0)
    read, fed = ("t", "1,16,16,3") if nhwc else ("x", "1,3,16,16")
    turned = "t = Transpose <perm=[0,3,1,2]> (x)" if nhwc else ""
    text = f"""<ir_version: 7, opset_import: ["" : 11]> a (float[{fed}] x) => (float[] y)
    {{ {turned} b = Conv <pads=[1,1,1,1]> ({read}, w0)  r = Relu(b)  {TAILS[tail]} }}"""
    model = onnx.parser.parse_model(text)
    for index, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{index}"
    for name, shape in WEIGHTS.items():
        values = rng.normal(0, 0.2, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return bytes(onnx.shape_inference.infer_shapes(model).SerializeToString())


def document(march: str, layout: str = "NCHW", **model: Any) -> dict[str, Any]:
    nash = march.startswith("nash")
    shared = {"input_type_rt": "rgb", "input_type_train": "rgb", "input_layout_train": layout}
    norm = {} if nash else {"norm_type": "data_scale"}
    named = {"onnx_model": "model.onnx", "march": march, "output_model_file_prefix": "p"}
    return {
        "model_parameters": {**named, "working_dir": "out", **model},
        "input_parameters": {**shared, **norm, "scale_value": 0.00392},
        "calibration_parameters": {"calibration_type": "skip"},
        "compiler_parameters": {"optimize_level": "O2"},
    }


def built(written: dict[str, Any], model: bytes) -> tuple[Bundle, str]:
    Path("model.onnx").write_bytes(model)
    Path("config.yaml").write_text(yaml.safe_dump(written))
    nash = written["model_parameters"]["march"].startswith("nash")
    tool = ["hb_compile"] if nash else ["hb_mapper", "makertbin", "--model-type", "onnx"]
    said = npumake(*tool, "-c", "config.yaml")
    return Bundle.load(Path("out/p.hybrid")), said


def rows(said: str) -> dict[str, list[str]]:
    """Unit, subgraph, type and DataType, which is what it reads, of each node of the table."""
    table = [line.split() for line in said.splitlines() if " BPU " in line or " CPU " in line]
    return {cells[0]: [*cells[1:4], cells[-1]] for cells in table if len(cells) > 5}


def type_of(bundle: Bundle) -> str:
    (name,) = bundle.program.outputs
    return bundle.program.tensors[name].dtype


@pytest.mark.slow
@pytest.mark.parametrize("march", ["bayes-e", "nash-e"])
@pytest.mark.parametrize("tail", ["conv", "nhwc"])
def test_without_its_dequantize_the_output_is_codes_and_info_has_their_scales(
    here: Path, march: str, tail: str
):
    bundle, said = built(document(march, remove_node_type="Dequantize"), network(tail))
    assert type_of(bundle) == "int32"
    assert [node["type"] for node in deleted_nodes(bundle)] == ["Dequantize"]
    assert "can be removed" not in said
    (shown,) = [line for line in npumake("info", "out/p.hybrid").splitlines() if "int32" in line]
    scales = json.loads(shown[shown.rindex("[") :])
    assert len(scales) == WEIGHTS["w1"][0]
    assert all(scale > 0 for scale in scales)
    graph = f"out/p_{'ptq' if march == 'nash-e' else 'quantized'}_model.onnx"
    assert "PASSED" in npumake("verify", "-q", graph, "-b", "out/p.hybrid")


@pytest.mark.slow
def test_the_name_of_a_conv_removes_the_dequantize_behind_it_and_never_the_conv(here: Path):
    plain, _ = built(document("nash-e"), network("conv"))
    less, _ = built(document("nash-e", remove_node_name="Conv_2;"), network("conv"))
    convs = [[s.name for s in x.program.instructions if s.op == "conv"] for x in (plain, less)]
    assert convs[0] == convs[1]
    assert [node["type"] for node in deleted_nodes(less)] == ["Dequantize"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Conv_0", "Relu_1", "nobody"])
def test_a_node_that_cannot_go_stays_and_is_named(here: Path, name: str):
    bundle, said = built(document("bayes-e", remove_node_name=name), network("conv"))
    assert type_of(bundle) == "float32"
    assert f"`{name}` is not removed" in " ".join(said.split())
    assert name in npumake("info", "out/p.hybrid")


@pytest.mark.slow
def test_a_transpose_of_a_picture_trained_as_nhwc_builds(here: Path):
    written = document("bayes-e", "NHWC", remove_node_type="Transpose")
    bundle, said = built(written, network("conv", nhwc=True))
    gone = [node["type"] for node in deleted_nodes(bundle)]
    assert "Transpose" in gone or "no Transpose can be removed" in " ".join(said.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "hb_mapper makertbin --model-type onnx --fast-perf --march bayes-e --model model.onnx",
        "hb_compile --fast-perf --march nash-e -m model.onnx",
    ],
)
@pytest.mark.parametrize("tail", TAILS)
def test_fast_perf_leaves_nothing_to_strip_and_nothing_to_the_cpu(
    here: Path, command: str, tail: str
):
    Path("model.onnx").write_bytes(network(tail, nhwc=True))
    npumake(*command.split())
    bundle = Bundle.load(Path("model_output/model.hybrid"))
    assert removable(bundle.program) == ()
    assert "onnx" not in {step.op for step in bundle.program.instructions}
    assert type_of(bundle) in ("int8", "int16", "int32")


@pytest.mark.parametrize(
    ("sizes", "layout"),
    [
        ((1, 3, 16, 32), "NCHW"),
        ((1, 16, 32, 3), "NHWC"),
        ((1, 3, 15, 32), ""),
        ((1, 16, 31, 3), ""),
        ((1, 3, None, 32), ""),
        ((1, 4, 16, 32), ""),
        ((1, 3, 16), ""),
    ],
)
def test_an_input_of_three_channels_and_even_sides_is_a_picture(sizes: Any, layout: str):
    assert picture_layout(sizes) == layout


@pytest.mark.slow
@pytest.mark.parametrize("nhwc", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        "hb_mapper makertbin --model-type onnx --fast-perf --march bayes-e --model model.onnx",
        "hb_compile --fast-perf --march nash-e -m model.onnx",
    ],
)
def test_fast_perf_feeds_a_picture_as_nv12(here: Path, command: str, nhwc: bool):
    Path("model.onnx").write_bytes(network("conv", nhwc))
    npumake(*command.split())
    info = " ".join(npumake("info", "model_output/model.hybrid").split())
    for said in ("input_type_rt : nv12", "input_type_train : bgr", "mean_value : 0.0"):
        assert said in info
    assert f"input_layout_train : {'NHWC' if nhwc else 'NCHW'}" in info


@pytest.mark.parametrize(
    ("march", "cores", "code", "expected"),
    [
        ("nash-e", "2", 2, "nash-e runs a model on one core"),
        ("nash-b-plus", "1", 0, "it is planned as nash-b"),
    ],
)
def test_a_march_of_the_command_line_is_that_of_the_yaml(
    here: Path, march: str, cores: str, code: int, expected: str
):
    Path("model.onnx").write_bytes(network("conv"))
    npumake("hb_compile", "-m", "model.onnx", "--march", march, "--core-num", cores, code=code)
    assert expected in Path("hb_compile.log").read_text()


@pytest.mark.slow
def test_what_is_stripped_is_handed_over(here: Path):
    built(document("bayes-e", remove_node_type="Dequantize", remove_node_name="y"), network("conv"))
    npumake("handover", "out/p", "--target", "rdk-x5", "--out", "handed")
    (config,) = Path("handed").glob("*.yaml")
    model = yaml.safe_load(config.read_text())["model_parameters"]
    assert (model["remove_node_type"], model["remove_node_name"]) == ("Dequantize", "y")


def oracle(name: str) -> bytes:
    return (SMALL / f"{name}.onnx").read_bytes()


SOFTMAX = ["optimization", "node_info int8", "node_info int16"]


@pytest.mark.slow
@needs_oracle
@pytest.mark.parametrize("way", SOFTMAX)
def test_a_type_asked_of_softmax_puts_it_on_the_bpu(here: Path, way: str):
    written = document("bayes-e")
    kind = way.rpartition(" ")[2] if " " in way else "int8"
    info = {"/Softmax": {"ON": "BPU", "InputType": kind, "OutputType": kind}}
    if way == "optimization":
        asked = "set_Softmax_input_int8,set_Softmax_output_int8"
        written["calibration_parameters"]["optimization"] = asked
    else:
        written["model_parameters"]["node_info"] = info
    _, said = built(written, oracle("softmax_opt"))
    assert {row[0] for row in rows(said).values()} == {"BPU"}
    assert {row[1] for row in rows(said).values()} == {"id(0)"}
    softmax = [row[-1] for name, row in rows(said).items() if name.endswith("QUANTIZED_SOFTMAX")]
    assert softmax == [kind] * 6


@pytest.mark.slow
@needs_oracle
def test_the_transpose_behind_the_last_conv_is_the_bpu_s_and_the_conv_int32(here: Path):
    _, said = built(document("bayes-e"), oracle("nhwc_out"))
    assert all(row[0] == "BPU" for row in rows(said).values())
    (file,) = here.rglob("*_quant_info.json")
    conv = json.loads(file.read_text())["/p/Conv"]
    assert (conv["input_type"], conv["output_type"]) == ("int8", "int32")


@pytest.mark.slow
@needs_oracle
def test_what_moves_data_in_front_of_the_last_table_is_the_bpu_s(here: Path):
    _, said = built(document("bayes-e"), oracle("rank3concat"))
    assert {tuple(row[:2]) for row in rows(said).values()} == {("BPU", "id(0)")}
