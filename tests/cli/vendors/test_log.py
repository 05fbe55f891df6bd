"""The logs of the vendors' commands and the files beside them, as public parsers read them."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from npumake.cli.main import main
from npumake.graph import Graph
from vendor_logs import DIGITS, HB_COMPILE, HB_MAPPER, cells, read_ruled, write_samples

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} file: \w+\.py func: \w+ line No: \d+ ")
FPS = re.compile(r"FPS=([0-9.]+), latency = ([0-9.]+) us, DDR = ([0-9]+) bytes   \(see (\S+)\)")
MAKES = {
    "hb_mapper": ["hb_mapper", "makertbin", "--model-type", "onnx"],
    "hb_compile": ["hb_compile"],
}
LOG = {"hb_mapper": "hb_mapper_makertbin.log", "hb_compile": "hb_compile.log"}
YAML = {"hb_mapper": HB_MAPPER, "hb_compile": HB_COMPILE}
Output = pytest.CaptureFixture[str]


@pytest.fixture
def here(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    shutil.copy(DIGITS / "model.onnx", tmp_path / "digits.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path_factory.getbasetemp() / "vendor_log"))
    return tmp_path


def made(here: Path, tool: str, old: str = "", new: str = "", code: int = 0) -> str:
    """The log of a run, `old` in its YAML being `new`."""
    if not (here / "calibration_data").is_dir():
        normalized = tool == "hb_compile"
        write_samples(here, 0.0625 if normalized else 1, np.float32 if normalized else np.uint8)
    (here / "c.yaml").write_text(YAML[tool].replace(old, new) if old else YAML[tool])
    assert main([*MAKES[tool], "-c", "c.yaml"]) == code
    return Path(LOG[tool]).read_text(encoding="utf-8")


def texts(log: str) -> list[str]:
    """What each stamped line says, with the lines below it that have no stamp."""
    starts = [*(found.start() for found in STAMP.finditer(log)), len(log)]
    assert starts[0] == 0
    each = (log[a:b] for a, b in pairwise(starts))
    return [STAMP.sub("", text).rstrip("\n") for text in each]


def place(found: list[str], start: str) -> int:
    (index,) = [number for number, text in enumerate(found) if text.startswith(start)]
    return index


ORDER = (
    "Start hb_mapper....",
    "Start Model Convert....",
    "Dump config:",
    "Start to Horizon NN Model Convert.",
    "The activation calibration parameters:",
    "Run calibration model with modelwise search method.",
    "Select ",
    "The main quantized node information:",
    "The quantized model output:",
    "End to Horizon NN Model Convert.",
    "End Model Convert",
)


@pytest.mark.slow
def test_the_log_of_makertbin_has_its_lines_in_their_order(here: Path):
    found = texts(made(here, "hb_mapper", "'max'", "'default'"))
    places = [place(found, start) for start in ORDER]
    assert places == sorted(places)


@pytest.mark.slow
def test_the_search_is_told_as_the_vendor_tells_it(here: Path):
    found = texts(made(here, "hb_mapper", "'max'", "'default'"))
    assert found[place(found, "The activation calibration parameters:")] == (
        "The activation calibration parameters:\n"
        "    calibration_type:     ['max', 'kl']\n"
        "    max_percentile:       [0.99995, 1.0]\n"
        "    per_channel:          [True, False]\n"
        "    asymmetric:           [True, False]\n"
        "The modelwise search parameters:\n"
        "    similarity:           0.995\n"
        "    metric:               cosine-similarity"
    )
    selected = found[place(found, "Select ")]
    assert re.fullmatch(
        r"Select (max|max-percentile:percentile=[0-9.]+|kl:num_bin=1024,max_num_bin=16384)"
        r"(,per_channel)?(,asymmetric)? method\.",
        selected,
    )
    assert not any(text.startswith("Keep ") for text in found)


@pytest.mark.slow
def test_its_tables_are_read_and_agree_with_quant_info(here: Path):
    found = texts(made(here, "hb_mapper"))
    _, nodes = read_ruled(found[place(found, "The main quantized node information:")])
    _, outputs = read_ruled(found[place(found, "The quantized model output:")])
    assert [row["Output"] for row in outputs] == ["logits"]
    assert 0.9 < float(outputs[0]["Cosine Similarity"]) <= 1.0
    info = json.loads((here / "model_output" / "digits_8x8_gray_quant_info.json").read_text())
    assert list(info) == [row["Node"] for row in nodes]
    for row in nodes:
        known = info[row["Node"]]
        assert (known["type"], known["on"]) == (row["Type"], row["ON"])
        assert f"{known['quantized_cosine_similarity']:.6f}" == row["Cosine Similarity"]
        threshold = "--" if known["threshold"] is None else f"{known['threshold']:.6}"
        assert threshold == row["Threshold"]


@pytest.mark.slow
def test_each_subgraph_has_a_line_of_speed_and_a_page(here: Path):
    log = made(here, "hb_mapper")
    ((fps, latency, ddr, page),) = FPS.findall(log)
    assert float(fps) > 0
    assert float(latency) >= 0
    assert int(ddr) > 0
    assert (here / "model_output" / page).is_file()
    assert "estimated" in log
    assert "`npumake perf`" in log


def test_the_screen_has_the_tables_of_the_log(here: Path, capsys: Output):
    found = texts(made(here, "hb_mapper"))
    shown = capsys.readouterr().out
    for title in ("The main quantized node information:", "The quantized model output:", "FPS="):
        assert found[place(found, title)] in shown


BROKEN = {
    "before the plan": ("scale_value: 0.0625", "scale_value: 1 x"),
    "no model": ("digits.onnx", "none.onnx"),
    "samples": ("scale_value: 0.0625", "scale_value: 1 2 3"),
}


@pytest.mark.slow
@pytest.mark.parametrize("tool", MAKES)
@pytest.mark.parametrize("name", BROKEN)
def test_the_log_of_a_run_that_fails_is_of_that_run(here: Path, tool: str, name: str):
    first = made(here, tool)
    found = texts(_failed(here, tool, *BROKEN[name]))
    assert "Cosine" in first
    assert not any("Cosine" in text for text in found)
    assert any(text.startswith("ERROR error: ") for text in found)
    assert found[-1].startswith("ERROR exception in command: ")


def _failed(here: Path, tool: str, old: str, new: str) -> str:
    """The log of a run that ends with 2, in a stage or before."""
    with contextlib.suppress(SystemExit):
        made(here, tool, old, new, code=2)
    return Path(LOG[tool]).read_text(encoding="utf-8")


def test_a_bug_of_ours_is_in_the_log_too(here: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise RuntimeError("anything")

    monkeypatch.setattr("npumake.cli.vendors.hb_mapper._convert", broken)
    with pytest.raises(RuntimeError):
        made(here, "hb_mapper")
    log = Path(LOG["hb_mapper"]).read_text(encoding="utf-8")
    assert "RuntimeError: anything" in log
    assert "this is a bug in npumake" in log


def test_the_checker_leaves_its_models_and_lines(here: Path):
    arguments = ["--model-type", "onnx", "--march", "bayes-e", "--model", "digits.onnx"]
    assert main(["hb_mapper", "checker", *arguments]) == 0
    log = Path("hb_mapper_checker.log").read_text(encoding="utf-8")
    found = texts(log)
    _, nodes = read_ruled(found[place(found, "The main quantized node information:")])
    on_cpu = [row["Node"] for row in nodes if row["ON"] == "CPU"]
    assert on_cpu == ["logits_transpose_output_reshape"], "a Gemm's view of its output"
    assert {row["Cosine Similarity"] for row in nodes} == {"--"}
    assert FPS.search(log)
    assert found[-1] == "End model checking...."
    for stage in ("original_float", "optimized_float", "calibrated", "quantized"):
        assert Graph.load(here / ".hb_check" / f"{stage}_model.onnx").outputs
    info = json.loads((here / ".hb_check" / "quant_info.json").read_text())
    assert list(info) == [row["Node"] for row in nodes]


@pytest.mark.slow
def test_hb_compile_has_boxes_a_summary_and_a_csv(here: Path):
    log = made(here, "hb_compile")
    found = texts(log)
    table = cells("\n".join(text for text in found if text.startswith("|")))
    heads = next(index for index, row in enumerate(table) if row[0] == "TensorName")
    folder = here / "model_output"
    with (folder / "digits_8x8_gray_node_info.csv").open(encoding="utf-8") as stream:
        assert list(csv.reader(stream)) == table[:heads]
    assert [row[0] for row in table[heads:]] == ["TensorName", "logits"]
    summary = "\n".join(found)
    assert re.search(r"^FPS \(1 core\): [0-9.]+$", summary, re.M)
    assert re.search(r"^latency: [0-9.]+ ms \([0-9.]+ us\)$", summary, re.M)
    assert re.search(r"^BPU conv original OPs per run: [0-9,]+$", summary, re.M)
    assert "The hb_compile completes running." in found
    assert (folder / "hb_compile.log").read_text(encoding="utf-8") == log
    assert list(json.loads((folder / "digits_8x8_gray_quant_info.json").read_text())) == [
        row[0] for row in table[1:heads]
    ]


def test_hb_compile_checks_without_cosines(here: Path):
    assert main(["hb_compile", "-m", "digits.onnx", "--march", "nash-e"]) == 0
    heads, *rows = cells(Path("hb_compile.log").read_text(encoding="utf-8"))
    assert heads == ["Node", "NodeType", "ON", "Output Data Type"]
    assert {row[2] for row in rows} == {"BPU"}
    assert (here / ".hb_compile" / "node_info.csv").is_file()
