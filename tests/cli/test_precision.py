"""`npumake precision`: the front, the YAML it writes, and what it says when it cannot."""

from __future__ import annotations

import json

import pytest
import yaml

from npumake.cli.main import main
from workspaces import Workspace

Output = pytest.CaptureFixture[str]


@pytest.fixture
def here(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(built.root)
    monkeypatch.delenv("CI", raising=False)
    return built


@pytest.fixture
def alone(here: Workspace) -> Workspace:
    """The project with one target."""
    project = here.project / "project.yaml"
    lines = project.read_text().splitlines()
    project.write_text("\n".join(line for line in lines if "ara240" not in line) + "\n")
    return here


@pytest.mark.slow
def test_the_choice_is_written_and_builds_into_what_was_promised(
    alone: Workspace, capsys: Output
) -> None:
    assert main(["precision", "digits", "--cosine", "0.9997"]) == 0
    assert "quantization.yaml written; doit builds it" in capsys.readouterr().out
    written = (alone.project / "quantization.yaml").read_text()
    assert written.startswith("# npumake precision digits --cosine 0.9997\n")
    assert set(yaml.safe_load(written)["types"].values()) == {"int16"}
    alone.doit()
    comparison = json.loads((alone.project / "out/comparison.rdk-x5.json").read_text())
    assert min(output["calibrated_cosine"] for output in comparison["outputs"]) > 0.9997
    assert main(["precision", "digits", "--cosine", "0.9997"]) == 0
    assert "nothing to promote" in capsys.readouterr().out


@pytest.mark.slow
def test_of_several_targets_it_prints_what_to_paste(here: Workspace, capsys: Output) -> None:
    assert main(["precision", "digits:rdk-x5", "--cosine", "0.9997"]) == 0
    told = capsys.readouterr().out
    assert "not written: `quantization.yaml` would apply to every target and variant" in told
    pasted = yaml.safe_load(told[told.index("targets:") :])
    assert set(pasted["targets"][0]["rdk-x5"]["quantization"]) == {"types"}
    assert not (here.project / "quantization.yaml").exists()


@pytest.mark.slow
def test_somebody_s_own_file_stays(alone: Workspace, capsys: Output) -> None:
    own = alone.project / "quantization.yaml"
    own.write_text("mode: full # because\n")
    assert main(["precision", "digits", "--cosine", "0.9997"]) == 0
    assert (
        "not written: quantization.yaml was not written by npumake; paste it"
        in capsys.readouterr().out
    )
    assert own.read_text() == "mode: full # because\n"


@pytest.mark.slow
def test_a_dry_run_writes_nothing(alone: Workspace, capsys: Output) -> None:
    assert main(["precision", "digits", "--cosine", "0.9997", "--dry-run"]) == 0
    assert "quantization:\n  types:\n" in capsys.readouterr().out
    assert not (alone.project / "quantization.yaml").exists()


@pytest.mark.slow
def test_machines_read_the_front(here: Workspace, capsys: Output) -> None:
    assert main(["precision", "digits:ara240", "--cosine", "0.9998", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["suffices"]
    assert found["chosen"] in found["front"]
    assert found["chosen"]["cosine"] >= 0.9998
    assert found["front"][0]["promoted"] == []
    assert found["trials"]["known"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("digits", 2, "which target?\nhint: digits:rdk-x5 or digits:ara240"),
        ("digit:rdk-x5", 2, "no project `digit`\nhint: did you mean `digits`?"),
        ("digits@p9:rdk-x5", 2, "no variant `digits@p9`\nhint: did you mean `digits`?"),
        ("digits:rdk-x3", 2, "`digits` has no target `rdk-x3`\nhint: did you mean `rdk-x5`?"),
        (
            "digits:rdk-x5 --to float16",
            2,
            "rdk-x5 has no 8-bit node to promote to float16\nhint: --to cpu",
        ),
        (
            "digits:rdk-x5 --cosine 1",
            6,
            "no promotion to int16 within the limits reaches cosine 1.0\n  --> digits:rdk-x5\n"
            "hint: the best tried has 0.999839; weights stay int8: try --to cpu",
        ),
    ],
)
def test_what_cannot_be(here: Workspace, capsys: Output, words: str, code: int, told: str) -> None:
    metric = [] if "--cosine" in words else ["--cosine", "0.9997"]
    assert main(["precision", *words.split(), *metric]) == code
    assert capsys.readouterr().err == f"error: {told}\n"


def test_without_samples_there_is_no_judge(alone: Workspace, capsys: Output) -> None:
    project = alone.project / "project.yaml"
    before, _, behind = project.read_text().partition("data:")
    text = before + behind[behind.index("calibration:") :]
    project.write_text(text.replace("method: max ", "method: skip "))
    assert main(["precision", "digits", "--cosine", "0.9997"]) == 2
    assert "error: no samples to evaluate\n" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--cosine 2", "--cosine 0.9 --most-nodes -1", "", "--cosine x"])
def test_limits_are_numbers_that_can_be(words: str, capsys: Output) -> None:
    with pytest.raises(SystemExit):
        main(["precision", "digits", *words.split()])
    assert "usage: npumake precision" in capsys.readouterr().err


def test_the_budget_may_be_the_evaluation(
    scored: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(scored.root)
    monkeypatch.delenv("CI", raising=False)
    asked = ["precision", "digits:ara240", "--metric", "top1", "--dry-run"]
    assert main([*asked, "--max-drop", "0", "--json"]) in (0, 6)
    found = json.loads(capsys.readouterr().out)
    assert all(0 <= choice["metric"] <= 100 for choice in found["front"])
    assert main([*asked, "--json"]) == 0  # the gate allows 5 points
    assert json.loads(capsys.readouterr().out)["trials"] == {"measured": 0, "known": 1}


@pytest.mark.parametrize(
    ("metric", "gates", "said"),
    [
        ("map50", True, "the evaluation has no `map50`"),
        ("m.py:f", True, "the project's metric is `top1`, not `m.py:f`"),
        ("top1", False, "how far may `top1` drop?"),
    ],
)
def test_a_metric_that_is_not_the_projects_is_an_error(
    scored: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
    metric: str,
    gates: bool,
    said: str,
) -> None:
    monkeypatch.chdir(scored.root)
    monkeypatch.delenv("CI", raising=False)
    if not gates:
        (scored.project / "gates.yaml").unlink()
    assert main(["precision", "digits:rdk-x5", "--metric", metric]) == 2
    assert said in capsys.readouterr().err
