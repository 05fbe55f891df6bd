"""The verbs on a built project: what a person reads, and the same for machines."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from npumake.cli.main import VERBS, main
from workspaces import Workspace


@pytest.fixture
def here(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(built.root)
    monkeypatch.delenv("CI", raising=False)
    return built


Output = pytest.CaptureFixture[str]


def test_list_tells_every_node_and_its_state(here: Workspace, capsys: Output) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["current"] * 16
    assert lines[0].split()[1] == "digits:original_float"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["projects/digits", "./projects/digits/", "digits"])
@pytest.mark.parametrize(
    ("verb", "rest"),
    [
        ("list", ""),
        ("why", ":rdk-x5/calibrated"),
        ("show", ":rdk-x5/quantized"),
    ],
)
def test_a_project_is_known_by_its_folder_too(here, capsys, verb, rest, name) -> None:
    assert main([verb, f"{name}{rest}"]) == 0
    assert f"{name if verb == 'show' else 'digits'}{rest}" in capsys.readouterr().out


def test_a_folder_is_known_from_anywhere(here, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["list", f"{here.project}"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 16
    node = f"{here.project}:rdk-x5/quantized"
    assert main(["diff", node, node]) == 0
    assert capsys.readouterr().out == "no difference\n"


@pytest.mark.slow
def test_a_node_is_known_by_its_artifact_too(here, capsys, tmp_path, monkeypatch) -> None:
    artifact = here.project / "out" / "quantized.rdk-x5.onnx"
    elsewhere = Workspace(tmp_path)
    built = elsewhere.npumake("build", f"{artifact}")
    assert re.fullmatch(r"\d current in .*", built.stdout.splitlines()[-1])
    monkeypatch.chdir(tmp_path)
    assert main(["why", f"{artifact}"]) == 0
    assert capsys.readouterr().out == "digits:rdk-x5/quantized  current\n"
    artifact.unlink()
    assert main(["why", f"{artifact}"]) == 0
    assert capsys.readouterr().out.startswith("digits:rdk-x5/quantized  cached\n")


def test_build_takes_a_folder_and_leaves_nothing_where_it_was_typed(here, tmp_path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    built = Workspace(elsewhere).npumake("build", f"{here.project}")
    assert built.stdout.splitlines()[-1].startswith("16 current in ")
    assert not any(elsewhere.iterdir())


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("digit", "no project and no node `digit`"),
        ("digits:rdk-x5/quantised", "no node `digits:rdk-x5/quantised`"),
        ("projects/digits@kl", "no variant `digits@kl`"),
    ],
)
def test_build_of_nothing_is_one_error(here, capsys, name, what) -> None:
    assert main(["build", name]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: {what}\nhint: did you mean `digits")


@pytest.mark.slow
def test_build_says_what_became_of_each_node_for_machines(fresh: Workspace) -> None:
    nodes = ("digits:original_float", "digits:rdk-x5/quantized")
    first, again = (fresh.npumake("build", "--json", *nodes) for _ in range(2))
    assert json.loads(first.stdout)[0]["node"] == "digits:original_float"
    assert {outcome["status"] for outcome in json.loads(first.stdout)} <= {"made", "recalled"}
    assert {outcome["status"] for outcome in json.loads(again.stdout)} == {"current"}
    assert "digits:rdk-x5/quantized" in first.stderr  # what a person reads
    shutil.rmtree(fresh.project / "samples")
    run = fresh.npumake("build", "--json", *nodes, check=False)
    failed = next(outcome for outcome in json.loads(run.stdout) if outcome["status"] == "failed")
    assert (failed["node"], failed["error"]["exit_code"]) == ("digits:samples", run.returncode)
    assert failed["error"]["where"].startswith("projects/digits/project.yaml:")


def test_list_says_cached_when_the_store_has_it(here: Workspace, capsys: Output) -> None:
    (here.project / "out" / "statistics.npz").unlink()
    main(["list", "digits", "--json"])
    found = {row["node"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["digits:statistics"]["status"] == "cached"
    assert found["digits:statistics"]["reasons"] == ["out/statistics.npz is missing"]
    assert found["digits:rdk-x5/calibrated"]["status"] == "current"


def test_why_names_the_key_its_values_and_its_line(here: Workspace, capsys: Output) -> None:
    yaml = here.project / "project.yaml"
    yaml.write_text(yaml.read_text().replace("method: max", "method: kl"))
    assert main(["why"]) == 0
    output = capsys.readouterr().out
    assert "digits:rdk-x5/recipe  would run" in output
    assert "calibration.method: max → kl   (project.yaml:17)" in output
    assert "statistics" not in output


def test_why_of_a_current_node_says_so(here: Workspace, capsys: Output) -> None:
    assert main(["why", "digits:statistics"]) == 0
    assert capsys.readouterr().out == "digits:statistics  current\n"
    assert main(["why"]) == 0
    assert capsys.readouterr().out == "every node is current\n"


def test_why_names_the_sample_that_changed(here: Workspace, capsys: Output) -> None:
    (here.project / "samples" / "0007.npy").unlink()
    main(["why", "digits:samples", "--json"])
    found = json.loads(capsys.readouterr().out)["digits:samples"]
    assert found["reasons"] == ["data.image.files 0007.npy: removed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("artifact", "expected"),
    [
        ("original_float.onnx", ["input image: float32[1, 1, 8, 8]", "preprocess_image"]),
        ("samples.npz", ["samples: 64", "image", "float32", "1x1x8x8"]),
        ("statistics.npz", ["tensors: 12", "Min", "Max"]),
        ("recipe.rdk-x5.json", ["method: max", "Low", "High"]),
        ("quantized.rdk-x5.onnx", ["opset: 20", "stem_conv", "DequantizeLinear", "Scale"]),
        ("digits.rdk-x5.hybrid", ["target: rdk-x5", "conv", "weight bytes", "provenance"]),
        ("compiled_check.rdk-x5.json", ["samples: 8", "Compiled Cosine", "logits"]),
        ("comparison.rdk-x5.json", ["16 of 64 samples", "Quantized Cosine", "logits"]),
    ],
)
def test_show_describes_every_kind_of_artifact(
    here: Workspace, capsys: Output, artifact: str, expected: list[str]
) -> None:
    path = f"projects/digits/out/{artifact}"
    assert main(["show", path]) == 0
    output = capsys.readouterr().out
    assert [text for text in expected if text not in output] == []
    assert "made by" in output
    assert main(["show", path, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sha256"] == here.digests()[artifact]
    assert document["made from"]["key"]


def test_show_takes_a_node_too(here: Workspace, capsys: Output) -> None:
    assert main(["show", "digits:ara240/compiled"]) == 0
    assert "target: ara240" in capsys.readouterr().out


def test_show_lists_a_zip_that_is_no_handover(capsys: Output, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "files.zip", "w") as archive:
        archive.writestr("model.xml", "<net/>")
    assert main(["show", f"{tmp_path / 'files.zip'}", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["rows"]) == ("archive", [["model.xml", 6]])
    (tmp_path / "files.zip").write_bytes(b"PK")
    assert main(["show", f"{tmp_path / 'files.zip'}"]) == 5
    assert "not a readable ZIP" in capsys.readouterr().err


def test_show_does_not_claim_an_origin_for_changed_bytes(here: Workspace, capsys: Output) -> None:
    path = here.project / "out" / "comparison.rdk-x5.json"
    path.write_text(path.read_text() + " ")
    assert main(["show", str(path)]) == 0
    assert "made from: not known here" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "what"),
    [("digits:rdk-x5/compild", "no node"), ("nothing.onnx", "no file and no node")],
)
def test_show_of_nothing_is_one_error(here: Workspace, capsys: Output, name, what) -> None:
    assert main(["show", name]) == 2
    assert f"error: {what} `{name}`\nhint: " in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(capsys: Output, verb: str) -> None:
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert "example:\n  npumake" in capsys.readouterr().out


@pytest.mark.slow
def test_build_prints_a_table_per_target(here: Workspace) -> None:
    for path in (here.project / "out").glob("comparison.*"):
        path.unlink()
    output = here.npumake("build").stdout
    rows = [line.split() for line in output.splitlines() if line.strip()]
    cosines = "Calibrated Cosine Quantized Cosine Compiled Cosine"
    header = f"Node ON Subgraph Type {cosines} Threshold DataType"
    assert [" ".join(row) for row in rows].count(header) == 2
    assert ["HZ_PREPROCESS_FOR_image", "BPU", "id(0)", "HzSQuantizedPreprocess"] in [
        row[:4] for row in rows
    ]
    last = [row for row in rows if row[:1] == ["logits"]][-1]
    assert last[3] == "Output"
    assert [float(cosine) > 0.99 for cosine in last[4:7]] == [True] * 3


def test_build_tells_machines_what_the_compiled_file_does(here: Workspace) -> None:
    run = here.npumake("build", "--json", "digits:rdk-x5/compiled_check")
    (found,) = (each["check"] for each in json.loads(run.stdout) if "check" in each)
    assert (found["runtime"], found["samples"], found["skipped"]) == ("npumake's runtime", 8, "")
    assert [output["name"] for output in found["outputs"]] == ["logits"]


@pytest.mark.slow
def test_a_compiled_file_that_is_not_run_is_a_line(here: Workspace) -> None:
    with (here.project / "project.yaml").open("a") as file:
        file.write("comparison: {compiled: off}\n")
    output = here.npumake("build").stdout
    line = "note: the compiled file was not run: `comparison.compiled` is off"
    assert output.splitlines().count(line) == 2
    assert "Compiled Cosine" not in output
