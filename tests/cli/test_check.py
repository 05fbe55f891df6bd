"""npumake check: a model or a project against a target, told, for machines, and rewritten."""

import csv
import json
import os
import re
import shutil

import onnx
import pytest

from npumake.cli.main import main
from npumake.cli.screen import SCREEN
from npumake.graph import parse_text
from npumake.targets.reader import known_targets
from workspaces import REPO

TEXT = """<ir_version: 7, opset_import: ["" : 11]> a (float[N,2,8,8] x) => (float[] y)
    <float[2,2,1,1] w = {1, 2, 3, 4}> {
    c = Conv(x, w)  p = AveragePool<kernel_shape=[8,8]>(c)  y = Elu(p) }"""
TWO = ["--target", "rdk-x3", "--target", "sl1680"]
NUMBER = r"[\d.e-]+"
SHAPE = ["--input-shape", "x", "1x2x8x8"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SCREEN, "_stream_in_use", None)  # where an earlier test may have left it
    (tmp_path / "m.onnx").write_bytes(parse_text(TEXT).to_bytes())
    return tmp_path


def test_every_node_is_told_and_what_keeps_it_off_the_npu(capsys):
    assert main(["check", "m.onnx", "--target", "rdk-x3", *SHAPE]) == 0
    shown = capsys.readouterr().out
    for line in (
        "c     BPU  id(0)     HzSQuantizedConv",
        "rdk-x3: 3 nodes, 2 on the CPU, 1 subgraphs main_graph_subgraph_0",
        "p (AveragePool): beyond a documented limit",
        "    1 <= kernel_h <= 7, found kernel_h = 8; average in two steps, or over the whole image",
        "y (Elu): the BPU does not run Elu",
    ):
        assert line in shown


def test_a_build_is_estimated_where_the_target_has_a_fitted_model(capsys):
    assert main(["check", "m.onnx", "--target", "rdk-x5", *SHAPE]) == 0
    shown = capsys.readouterr().out
    assert re.search(
        r"estimated: latency [\d.e-]+ ms \([\d.e-]+ to [\d.e-]+, extrapolated\)", shown
    )
    assert "fitted on " in shown
    both = ["--target", "rdk-x5", "--target", "rdk-x3"]
    assert main(["check", "m.onnx", *both, *SHAPE, "--json"]) == 0
    fitted, other = json.loads(capsys.readouterr().out)
    low, high = fitted["estimate"]["latency interval (ms)"]
    assert low < fitted["estimate"]["latency (ms)"] < high
    assert other["estimate"] is None


def test_several_targets_for_machines(capsys):
    assert main(["check", "m.onnx", *TWO, "--json", *SHAPE]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["target"], second["target"]) == ("rdk-x3", "sl1680")
    assert [node["on"] for node in first["nodes"]] == ["BPU", "CPU", "CPU"]
    assert {node["on"] for node in second["nodes"]} == {"NPU"}


def test_a_rewritten_model_is_checked_again(here, capsys):
    assert main(["check", "m.onnx", "--target", "rdk-x3", "--fix", "fixed.onnx", *SHAPE]) == 0
    shown = capsys.readouterr().out
    assert "wrote     fixed.onnx: pool_whole_image" in shown
    assert "nodes on the CPU: 2 before, 1 now" in shown
    made = onnx.load("fixed.onnx")
    assert [node.op_type for node in made.graph.node] == ["Conv", "GlobalAveragePool", "Elu"]
    assert made.opset_import[0].version == 11


@pytest.mark.slow
def test_a_project_says_its_targets_itself(here, capsys):
    ignored = shutil.ignore_patterns("out", ".doit.db*", "__pycache__")
    shutil.copytree(REPO / "projects" / "digits", here / "digits", ignore=ignored)
    assert main(["check", "digits", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [result["target"] for result in found] == ["rdk-x5", "ara240"]
    left = [node["type"] for node in found[0]["nodes"] if node["on"] != "BPU"]
    assert left == ["Reshape"]  # of the Gemm, as the vendor's checker has it


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("m.onnx --target rdk-x9", 2, "unknown target `rdk-x9`"),
        ("m.onnx --target rdk-x3 --fix a.onnx", 3, "inputs leave dimensions open: `x`"),
        ("m.onnx --target rdk-x3 --input-shape z 1x2", 3, "the model has no input `z`"),
        ("m.onnx --target rdk-x3 --input-shape x 1x3x8x8", 3, "does not fit input `x`"),
        ("none.onnx --target rdk-x3", 2, "cannot read the model"),
        ("m.onnx --fix a.onnx", 2, "`--fix` is for one model file and one target"),
        ("m.onnx --target ara240 --input-shape x 1x2x8x8 --fix a.onnx", 3, "no rewrite"),
        ("m.onnx --target rdk-x3 --input-shape x 1x2x8x8 --fix m.onnx", 2, "something already"),
    ],
)
def test_one_clear_error(capsys, command, code, said):
    assert main(["check", *command.split()]) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("error: ") == 1
    assert os.listdir() == ["m.onnx"]


def test_open_dimensions_get_a_size_and_a_note(capsys):
    assert main(["check", "m.onnx", "--target", "rdk-x3"]) == 0
    assert "note: open dimensions: `x` [N, 2, 8, 8] as 1x2x8x8" in capsys.readouterr().out
    assert main(["check", "m.onnx", "--target", "rdk-x3", "--json"]) == 0
    assert "as 1x2x8x8" in json.loads(capsys.readouterr().out)[0]["notes"][0]


def test_without_a_target_every_chip_has_a_line(capsys):
    assert main(["check", "m.onnx", "--format", "csv"]) == 0
    heads, *rows = csv.reader(capsys.readouterr().out.splitlines())
    assert heads[:3] == ["Target", "NPU", "CPU"]
    assert [row[0] for row in rows] == [*known_targets()]
    assert {sum(map(int, row[1:3])) for row in rows} == {3}
    assert all(row[5] for row in rows if row[2] != "0")  # a reason


def test_a_node_on_the_cpu_between_two_on_the_npu_leaks(here, capsys):
    text = TEXT.replace("p = Ave", "e = Elu(c)  d = Conv(e, w)  p = Ave").replace(
        "(c)  y", "(d)  y"
    )
    (here / "m.onnx").write_bytes(parse_text(text).to_bytes())
    assert main(["check", "m.onnx", "--target", "rdk-x3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["leaks"] == ["e"]


def test_what_no_unit_runs_is_refused_all_at_once(here, capsys):
    text = TEXT.replace("y = Elu(p)", "h = Hardmax(p)  m = Mean(h, p)  y = Mean(m, p)")
    (here / "m.onnx").write_bytes(parse_text(text).to_bytes())
    assert main(["check", "m.onnx", "--target", "rdk-x5", *SHAPE]) == 3
    said = capsys.readouterr()
    assert (
        "rdk-x5 supports these operators neither on NPU nor CPU: Hardmax (h); Mean (m, y)"
        in said.err
    )
    assert "not supported: Mean: m, y" in said.out


LOOP = """<ir_version: 8, opset_import: ["" : 17]> a (float[1,2] x) => (float[1,2] y)
    <int64 few = {7}> { y = Loop(few, , x) <body = body (int64 i, bool on, float[1,2] s)
        => (bool more, float[1,2] t) { [plus] t = Add(s, x) [same] more = Identity(on) }> }"""


def test_the_nodes_in_the_body_of_a_loop_are_named(here, capsys):
    (here / "loop.onnx").write_bytes(parse_text(LOOP).to_bytes())
    assert main(["check", "loop.onnx", "--target", "sl1680", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [(row["node"], row["on"], row["type"]) for row in found["nodes"]] == [
        ("y", "CPU", "Loop"),
        ("y/plus", "CPU", "Add"),
        ("y/same", "CPU", "Identity"),
    ]
    assert found["nodes"][1]["why"] == "it is in a body of `y`, a Loop"
