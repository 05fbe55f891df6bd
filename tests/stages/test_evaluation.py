"""evaluation and gates in a build: figures, what is run again, and a build that fails with 6."""

from __future__ import annotations

import json

import numpy as np
import pytest

from npumake.runtime import Session
from workspaces import Workspace, made

SCORES = ("calibrated_score", "quantized_score", "compiled_score")


def figures(workspace: Workspace, artifact: str) -> dict[str, float]:
    path = workspace.project / "out" / f"{artifact}.json"
    return json.loads(path.read_text())["by_name"]


def edit(workspace: Workspace, file: str, old: str, new: str) -> None:
    path = workspace.project / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("score", "artifact"),
    [
        ("float_score", "original_float.onnx"),
        ("calibrated_score.ara240", "calibrated.ara240.onnx"),
        ("quantized_score.rdk-x5", "quantized.rdk-x5.onnx"),
        ("compiled_score.ara240", "digits.ara240.hybrid"),
    ],
)
def test_top1_is_that_of_ten_lines_of_numpy(
    scored_once: Workspace, score: str, artifact: str
) -> None:
    project = scored_once.project
    session = Session(project / "out" / artifact)
    pixels = np.load(project / "test_images.npy")[:120].astype(np.float32) - 128
    labels = np.load(project / "test_labels.npy")[:120]
    logits = [session.run(None, {"image": pixel[None]})[0].ravel() for pixel in pixels]
    top1 = np.mean([np.argmax(row) == label for row, label in zip(logits, labels, strict=True)])
    top5 = [label in np.argsort(-row)[:5] for row, label in zip(logits, labels, strict=True)]
    found = figures(scored_once, score)
    assert found["top1"] == pytest.approx(100 * top1, abs=1e-6)
    assert found["top5"] == pytest.approx(100 * np.mean(top5), abs=1e-6)


def test_a_second_build_runs_nothing(scored: Workspace) -> None:
    run = scored.doit()
    assert made(run, "made") == made(run, "recalled") == set()


@pytest.mark.slow
def test_another_label_runs_the_evaluation_alone(scored: Workspace) -> None:
    project = scored.project
    labels = "".join(f"{path.name},{path.parent.name}\n" for path in project.glob("val/*/*.npy"))
    (project / "labels.csv").write_text("file,label\n" + labels)
    edit(scored, "evaluation.yaml", "npy}", "npy, labels: labels.csv}")
    scored.doit()
    before = figures(scored, "float_score")["top1"]
    first = (project / "labels.csv").read_text().splitlines()[1]
    edit(scored, "labels.csv", first, first[:-1] + str((int(first[-1]) + 1) % 10))
    again = made(scored.doit(), "made")
    assert {name.rpartition("/")[2] for name in again} == {
        *("calibration_fit", "float_score", "verdict", "evaluation", "gates"),
        *SCORES,
    }
    assert abs(figures(scored, "float_score")["top1"] - before) <= 100 / 120 + 1e-6


@pytest.mark.slow
def test_one_artifact_more_runs_its_own_score_alone(scored: Workspace) -> None:
    edit(scored, "evaluation.yaml", "[float, calibrated, quantized, compiled]", "[quantized]")
    scored.doit()
    edit(scored, "evaluation.yaml", "[quantized]", "[quantized, calibrated]\njobs: 1")
    again = made(scored.doit(), "made")
    assert {name.rpartition("/")[2] for name in again} == {"verdict", "evaluation"}


@pytest.mark.slow
def test_a_change_of_the_integers_does_not_run_the_float_model(scored: Workspace) -> None:
    edit(scored, "project.yaml", "method: max ", "method: kl ")
    again = made(scored.doit(), "made")
    assert "float_score" not in again
    assert "rdk-x5/quantized_score" in again


@pytest.mark.slow
def test_a_gate_not_met_fails_with_6_and_keeps_what_was_made(scored: Workspace) -> None:
    edit(scored, "gates.yaml", "0.99}", "0.9997}")
    run = scored.npumake("build", "digits:rdk-x5/gates", check=False)
    assert run.returncode == 6
    assert "projects/digits/gates.yaml:2:3" in run.stdout
    assert (scored.project / "out" / "quantized.rdk-x5.onnx").is_file()
    [_, gate, _] = json.loads((scored.project / "out/verdict.rdk-x5.json").read_text())["gates"]
    assert len(gate["nodes"]) == 3
    assert gate["suggestion"]["after"] > gate["suggestion"]["before"]
    again = scored.npumake("build", "digits:rdk-x5/gates", check=False)
    assert again.returncode == 6
    assert made(again, "made") == set()


@pytest.mark.slow
def test_the_advice_of_a_gate_mends_the_build(scored: Workspace) -> None:
    edit(scored, "gates.yaml", "0.99}", "0.99965}")
    run = scored.npumake("build", "digits:rdk-x5/gates", check=False)
    advice = run.stdout.partition("meets the gate\n")[2].partition("\n1 made")[0]
    lines = [line for line in advice.splitlines() if line[:1] in ("q", " ")]
    with (scored.project / "project.yaml").open("a") as project:
        project.write("\n".join(lines) + "\n")
    assert scored.npumake("build", "digits:rdk-x5/gates", check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ("- {metric: top1}", "error: not a gate"),
        ("- {cosine: 0.9, max_cpu_nodes: 0}", "error: not a gate"),
        ("- {metric: map50, max_drop: 1}", "error: the evaluation has no `map50`"),
    ],
)
def test_a_gate_that_is_none_is_one_error_at_its_place(
    scored: Workspace, gates: str, said: str
) -> None:
    (scored.project / "gates.yaml").write_text(gates + "\n")
    run = scored.npumake("build", "digits:rdk-x5/gates", check=False)
    assert run.returncode == 2
    told = run.stdout + run.stderr
    assert said in told
    assert told.count("error:") == 1
    assert "gates.yaml:1:" in told


@pytest.mark.slow
def test_a_hook_is_run_and_its_bytes_are_in_the_key(scored: Workspace) -> None:
    hook = scored.project / "metrics.py"
    hook.write_text(
        "def right(answers):\n"
        "    return sum(outputs['logits'].argmax() == label for outputs, label in answers)\n"
    )
    edit(scored, "evaluation.yaml", "artifacts:", "metric: metrics.py:right\nartifacts:")
    (scored.project / "gates.yaml").unlink()
    top1 = figures(scored, "float_score")["top1"]
    scored.doit()
    assert figures(scored, "float_score")["right"] == pytest.approx(top1 * 120 / 100)
    hook.write_text(hook.read_text().replace("sum(", "2 * sum("))
    scored.doit()
    assert figures(scored, "float_score")["right"] == pytest.approx(2 * top1 * 120 / 100)


@pytest.mark.slow
def test_nodes_asked_onto_the_cpu_fail_a_gate_that_says_how_to_get_them_back(
    scored: Workspace,
) -> None:
    with (scored.project / "project.yaml").open("a") as project:
        project.write("quantization: {cpu: [pool]}\n")
    run = scored.npumake("build", "digits:ara240/gates", check=False)
    assert run.returncode == 6
    assert "2 nodes run on the CPU; at most 0 are allowed" in run.stdout
    assert "  pool  on the CPU\n  flatten  on the CPU\n" in run.stdout
    assert "# tried: 2 -> 0, meets the gate\nquantization:\n  npu:\n  - pool\n" in run.stdout
