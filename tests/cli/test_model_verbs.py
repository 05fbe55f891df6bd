"""The verbs on a compiled model: run, bench, verify, pack, info, modify."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from cli.detectors import compiled_detector, detector
from npumake.bundle.archive import Bundle
from npumake.cli.main import main
from npumake.runtime import Session
from workspaces import Workspace

Output = pytest.CaptureFixture[str]
QUANTIZED = "quantized.rdk-x5.onnx"
BUNDLE = "digits.rdk-x5.hybrid"


@pytest.fixture
def out(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The artifacts of digits, and a picture of a digit beside them."""
    folder = built.project / "out"
    monkeypatch.chdir(folder)
    pixels = np.load(built.project / "samples" / "0003.npy").reshape(8, 8).astype(np.uint8)
    Image.fromarray(pixels).save(folder / "digit.png")
    (folder / "labels.txt").write_text("\n".join(f"digit {n}" for n in range(10)))
    return folder


def lines(capsys: Output) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_run_shows_the_highest_classes_and_what_they_are_called(out: Path, capsys: Output) -> None:
    fed = ["--input", "digit.png", "--labels", "labels.txt", "--top", "2"]
    assert main(["run", BUNDLE, *fed, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    (logits,) = Session(BUNDLE).run(
        None, {"image": np.asarray(Image.open("digit.png"))[None, None]}
    )
    assert (first["class"], first["score"]) == (logits.argmax(), logits.max())
    assert first["label"] == f"digit {first['class']}"
    assert first["score"] > second["score"]
    assert main(["run", BUNDLE, *fed]) == 0
    assert lines(capsys)[0].split()[1:] == [str(first["class"]), *first["label"].split()]


def test_run_gives_the_boxes_of_a_detector_and_draws_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    detector().save(Path("net.onnx"))
    Image.fromarray(np.zeros((64, 256, 3), np.uint8)).save("dark.png")
    command = ["run", "net.onnx", "--input", "dark.png", "--draw", "drawn.png", "--json"]
    assert main(command) == 0
    (box,) = json.loads(capsys.readouterr().out)
    assert (box["class"], box["label"], round(box["score"], 3)) == (1, "star", 0.9)
    assert box["box"] == [64, 24, 128, 16]  # of the picture, four times as wide, twice as high
    assert np.asarray(Image.open("drawn.png"))[24, 64:193].any(axis=1).all()
    assert main([*command, "--score", "0.95"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main([*command[:-1], "--score", "0.95"]) == 0
    assert capsys.readouterr().out == "no box scores 0.95 or more; --score sets a lower limit\n"


def test_run_names_the_metadata_that_do_not_fit_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    model = onnx.load_from_string(detector().to_bytes())
    (entry,) = (entry for entry in model.metadata_props if entry.key == "edgefirst")
    document = json.loads(entry.value)
    name = document["outputs"][0]["name"]
    document["outputs"][0]["name"] = f"{name}s"
    entry.value = json.dumps(document)
    onnx.save(model, "net.onnx")
    Image.fromarray(np.zeros((32, 64, 3), np.uint8)).save("dark.png")
    assert main(["run", "net.onnx", "--input", "dark.png"]) == 3
    error = capsys.readouterr().err
    assert f"no output `{name}s`" in error
    assert "edgefirst.json in the model" in error
    assert f"did you mean `{name}`?" in error


def test_run_gives_the_boxes_of_the_detector_that_is_chosen_of_a_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    found = compiled_detector()
    found.save(Path("net.hybrid"))
    replace(found, beside={}).save(Path("plain.hybrid"))
    main(["pack", "net.hybrid", "plain.hybrid", "-o", "both.hybrid"])
    Image.fromarray(np.zeros((32, 64, 3), np.uint8)).save("dark.png")
    capsys.readouterr()
    command = ["run", "both.hybrid", "--input", "dark.png", "--json", "-m"]
    assert main([*command, "net", "--draw", "drawn.png"]) == 0
    (box,) = json.loads(capsys.readouterr().out)
    assert (box["label"], box["box"]) == ("star", [16, 12, 32, 8])
    assert np.asarray(Image.open("drawn.png"))[12, 16:49].any(axis=1).all()
    assert main([*command, "plain"]) == 0
    assert {one["label"] for one in json.loads(capsys.readouterr().out)} == {""}


def test_run_tells_and_saves_what_is_no_score_of_a_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "g (float[1, 2, 3] x) => (float[1, 2, 3] file, bool[1, 2, 3] sign) "
    text += "{ file = Neg (x) sign = Less (x, file) }"
    onnx.save(
        onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]>{text}'), "net.onnx"
    )
    given = np.array([[[-1, 2, np.nan], [4, -5, 6]]], np.float32)
    np.save("x.npy", given)
    assert main(["run", "net.onnx", "--input", "x.npy", "--save", "made.npz"]) == 0
    first, second = lines(capsys)
    assert first == "file: float32[1, 2, 3]  min -6  mean -1.2  max 5  not finite 1"
    assert second.startswith("sign: bool[1, 2, 3]")
    with np.load("made.npz") as saved:
        np.testing.assert_array_equal(saved["file"], -given)
        np.testing.assert_array_equal(saved["sign"], given < -given)
    assert main(["run", "net.onnx", "--input", "x.npy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["shape"] == [1, 2, 3]
    assert main(["run", "net.onnx", "--input", "x.npy", "--save", "made.txt"]) == 2


def test_run_tells_and_saves_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = "g (float[2] x) => (string[2] y) { y = Cast <to=8> (x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> {graph}'), "n.onnx")
    np.save("x.npy", np.array([1, 0.5], np.float32))
    assert main(["run", "n.onnx", "--input", "x.npy", "--save", "made.npz"]) == 0
    assert lines(capsys) == ["y: object[2]"]
    with np.load("made.npz") as saved:
        assert saved["y"].tolist() == ["1", "0.5"]


def test_run_wants_a_file_for_every_input_by_a_name_it_has(out: Path, capsys: Output) -> None:
    assert main(["run", BUNDLE, "--input", "imagee=digit.png"]) == 2
    assert "did you mean `image`?" in capsys.readouterr().err


def test_bench_counts_as_hrt_model_exec_does(out: Path, capsys: Output) -> None:
    command = ["bench", BUNDLE, "--frame_count", "5", "--thread_num", "2", "--profile_path", "p"]
    assert main([*command, "--profiling"]) == 0
    shown = capsys.readouterr().out
    assert "Thread number is: 2\n  Frame count is: 5\n" in shown
    assert re.search(r"Average latency is: [\d.]+ ms\n  Frame rate is: [\d.]+ FPS\n", shown)
    steps = Bundle.load(Path(BUNDLE)).program.instructions
    assert len(re.findall(r"^\| +\d+ \|", shown, re.M)) == len(steps)
    first, second = Path("p/profiler.log").read_text().split("***\n")
    assert json.loads(first)["running_condition"]["frame_count"] == 5
    assert list(json.loads(second)["model_latency"]) == [step.name for step in steps]
    assert len(Path("p/profiler.csv").read_text().splitlines()) == len(steps) + 1


def test_a_bundle_built_with_profiling_has_its_table_unasked(out: Path, capsys: Output) -> None:
    table = re.compile(r"iobuf_count: 2, iobuf_size: \d+, layers: \d+\n\| lyr \|      cycle \|")
    plain = Bundle.load(Path(BUNDLE))
    replace(plain, settings={**plain.settings, "profiling": True}).save(Path("profiled.hybrid"))
    command = ["--frame_count", "1"]
    assert main(["bench", "profiled.hybrid", *command]) == 0
    assert table.search(capsys.readouterr().out)
    assert main(["bench", BUNDLE, *command]) == 0
    shown = capsys.readouterr().out
    assert not table.search(shown)
    assert "compile: {profiling: true}" in shown
    assert main(["bench", QUANTIZED, *command, "--profiling"]) == 2


@pytest.mark.parametrize("wrong", [("--thread_num", "9"), ("--frame_count", "0")])
def test_bench_refuses_what_cannot_be_run(out: Path, wrong: tuple[str, str]) -> None:
    assert main(["bench", BUNDLE, *wrong]) == 2


def test_verify_passes_what_was_built(out: Path, capsys: Output) -> None:
    assert main(["verify", "-q", QUANTIZED, "-b", BUNDLE, "-i", "digit.png"]) == 0
    assert lines(capsys) == ["Quanti onnx and bundle result Strict check PASSED"]


def test_verify_finds_one_weight_changed_by_one(out: Path, capsys: Output) -> None:
    bundle = Bundle.load(Path(BUNDLE))
    steps = list(bundle.program.instructions)
    at = next(index for index, step in enumerate(steps) if step.name == "logits")
    weight = steps[at].constants["weight"].copy()
    weight.flat[0] -= 1
    steps[at] = replace(steps[at], constants={**steps[at].constants, "weight": weight})
    changed = replace(bundle, program=replace(bundle.program, instructions=tuple(steps)))
    changed.save(Path("changed.hybrid"))
    assert main(["verify", "-q", QUANTIZED, "-b", "changed.hybrid"]) == 6
    assert f"changed: {steps[at].name}: 1 of {weight.size} values of weight" in lines(capsys)


@pytest.mark.parametrize(
    ("file", "data", "code", "what"),
    [
        ("none.onnx", None, 2, "no such file"),
        ("bad.onnx", b"no model", 3, "bad.onnx"),
        (BUNDLE, None, 3, BUNDLE),
    ],
)
def test_verify_wants_a_graph_to_hold_it_against(
    out: Path, capsys: Output, file: str, data: bytes | None, code: int, what: str
) -> None:
    if data is not None:
        Path(file).write_bytes(data)
    assert main(["verify", "-q", file, "-b", BUNDLE]) == code
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert what in said


@pytest.mark.parametrize(
    ("command", "code", "what"),
    [
        (["run", BUNDLE, "--input", "digit.png", "--draw", "d.png"], 2, "no boxes to draw"),
        (
            ["run", BUNDLE, "--input", "digit.png", "--threads", "0"],
            2,
            "0 is not a number of threads",
        ),
        (["run", "/", "--input", "digit.png"], 2, "no project here"),
        (["modify", BUNDLE, "-r", "image_quantized", "-o", "."], 5, "cannot write"),
    ],
    ids=["draw", "threads", "directory", "modify"],
)
def test_a_slip_is_one_error(
    out: Path, capsys: Output, command: list[str], code: int, what: str
) -> None:
    assert main(command) == code
    said = capsys.readouterr().err
    assert said.startswith(f"error: {what}")
    assert said.count("error: ") == 1


def test_what_is_no_bundle_is_told_what_is_one(out: Path, capsys: Output) -> None:
    for verb in ("modify", "perf"):
        assert main([verb, QUANTIZED]) == 3
        assert "hint: a bundle is a .hybrid, this is a .onnx" in capsys.readouterr().err


def test_verify_counts_the_lines_that_differ(out: Path, capsys: Output) -> None:
    assert main(["verify", "-q", QUANTIZED, "-b", "digits.ara240.hybrid", "-d", "2"]) == 6
    shown = capsys.readouterr().out
    assert "mismatch.line_miss num: 0\nmismatch.line_diff num: " in shown
    assert "total line num: 10\nmismatch rate: " in shown


@pytest.mark.slow
def test_a_pack_runs_and_is_told_by_its_names(out: Path, capsys: Output) -> None:
    assert main(["pack", BUNDLE, "digits.ara240.hybrid", "-o", "both.hybrid"]) == 0
    assert main(["pack", "both.hybrid", "-o", "again.hybrid"]) == 3
    assert "both is a packed model, it can not be packed again!" in capsys.readouterr().err
    assert main(["run", "both.hybrid", "-m", "digits.ara240", "--input", "digit.png"]) == 0
    packed = lines(capsys)
    assert main(["run", "digits.ara240.hybrid", "--input", "digit.png"]) == 0
    assert lines(capsys) == packed
    assert main(["info", "both.hybrid"]) == 0
    assert [line for line in lines(capsys) if line.startswith("********")] == [
        "******** digits.rdk-x5 info *********",
        "******** digits.ara240 info *********",
    ]
    for verb in (["bench", "--frame_count", "1"], ["show"], ["info"]):
        assert main([verb[0], "both.hybrid", "-m", "digits.ara240", *verb[1:]]) == 0
        capsys.readouterr()
        assert main([verb[0], "both.hybrid", "-m", "none", *verb[1:]]) == 3
        said = capsys.readouterr().err
        assert "no model `none`" in said
        assert "known: digits.ara240, digits.rdk-x5" in said
    for refused in (["modify", "both.hybrid"], ["verify", "-q", QUANTIZED, "-b", "both.hybrid"]):
        assert main(refused) == 3
        assert "pack model is not supported" in capsys.readouterr().err


def test_modify_lists_then_deletes_and_info_remembers(out: Path, capsys: Output) -> None:
    assert main(["modify", BUNDLE]) == 0
    assert lines(capsys) == ["Nodes that can be deleted: ['image_quantized', 'logits_matrix']"]
    assert (
        main(["modify", BUNDLE, "-r", "image_quantized", "-a", "Reshape", "-a", "Dequantize"]) == 0
    )
    assert lines(capsys) == [
        "Node 'image_quantized' found, its OP type is 'Quantize'",
        "Node 'image_quantized' is removed",
        "Node 'logits_matrix' found, its OP type is 'Reshape'",
        "Node 'logits_matrix' is removed",
        "Node 'logits_dequantized' found, its OP type is 'Dequantize'",
        "Node 'logits_dequantized' is removed",
        "modified model saved as digits.rdk-x5_modified.hybrid",
    ]
    assert main(["info", "digits.rdk-x5_modified.hybrid"]) == 0
    assert lines(capsys)[-4:] == [
        "--------- deleted nodes -",
        "deleted nodes: image_quantized",
        "deleted nodes: logits_matrix",
        "deleted nodes: logits_dequantized",
    ]
    listed = Path("deleted_nodes_info.txt").read_text().splitlines()
    assert [len(json.loads(line).get("scales", ())) for line in listed] == [0, 0, 10]


def test_preprocess_writes_a_file_per_picture_with_its_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pictures").mkdir()
    for name in ("a", "b"):
        Image.fromarray(np.full((300, 400, 3), 90, np.uint8)).save(f"pictures/{name}.png")
    Path("val.txt").write_text("b.png 7\n")
    command = ["preprocess", "-i", "pictures", "-o", "made", "-m"]
    assert main([*command, "mobilenetv1", "-v", "val.txt"]) == 0
    (file,) = Path("made").iterdir()
    assert file.name == "b_300_400_224_224.bin"
    assert len(file.read_bytes()) == 224 * 224 * 3 // 2
    assert set(file.read_bytes()) == {90, 128}  # gray: luma, and no colour
    assert main([*command, "efficientnet_lite4", "--form", "rgb"]) == 0
    assert Path("made/a_300_400_300_300.bin").read_bytes() == bytes([90]) * 300 * 300 * 3
    assert main([*command, "mobilnetv1"]) == 2
    assert "did you mean `mobilenetv1`?" in capsys.readouterr().err
