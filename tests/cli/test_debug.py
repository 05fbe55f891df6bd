"""npumake debug, and what a broken build says of itself."""

from __future__ import annotations

import json

import pytest

from workspaces import Workspace


@pytest.mark.slow
def test_a_probe_is_made_once(built: Workspace) -> None:
    asked = ("debug", "get-sensitivity-of-nodes", "digits:rdk-x5", "-m", "[mse,sqnr]", "-d", "4")
    first, again = (built.npumake(*asked).stdout for _ in range(2))
    assert first == again
    lines = first.splitlines()
    assert lines[0].strip("=") == "node"
    assert lines[1].split() == ["Node", "mse", "sqnr"]
    figures = [float(line.split()[1]) for line in lines[3:]]
    assert figures == sorted(figures, reverse=True)
    out = built.project / "out"
    files = (str(out / "calibrated.rdk-x5.onnx"), str(out / "samples.npz"))
    same = built.npumake("debug", "get_sensitivity_of_nodes", *files, "-m", "[mse,sqnr]", "-d", "4")
    assert same.stdout == first


@pytest.mark.slow
def test_blame_and_json(built: Workspace) -> None:
    found = json.loads(built.npumake("debug", "blame", "digits:rdk-x5", "--json").stdout)
    assert found[0]["lost"] == max(one["lost"] for one in found)
    few = json.loads(built.npumake("debug", "blame", "digits:rdk-x5", "-d", "1", "--json").stdout)
    assert not any(one["is_fault"] for one in (*found, *few))


@pytest.mark.slow
def test_a_broken_build_names_the_node_and_what_helps(fresh: Workspace) -> None:
    file = fresh.project / "project.yaml"
    said = file.read_text()
    broken = said.replace("method: max #", "method: max_percentile\n  percentile: 0.7 #")
    file.write_text(broken)
    output = fresh.npumake("build", "digits:rdk-x5/comparison").stdout
    assert "worst node: stem_conv (stem_bn in the trained model) alone adds noise of" in output
    assert "values are clipped at 0.622" in output
    assert any(line.split()[:2] == [">", "stem_conv"] for line in output.splitlines())
    assert "try:  calibration: {method: max}" in output
    file.write_text(broken.replace("max_percentile\n  percentile: 0.7", "max"))
    assert "worst node" not in fresh.npumake("build", "digits:rdk-x5/comparison").stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("blame", "digits"), "error: which target?"),
        (("blame", "calibrated.onnx"), "error: which calibration data?"),
        (("plot-acc-error", "digits:rdk-x5"), "error: give either quantize_node or"),
        (
            ("plot-distribution", "digits:rdk-x5", "-n", "zzz"),
            "error: nothing is quantized at `zzz`",
        ),
    ],
)
def test_what_cannot_be_looked_at(built: Workspace, words: tuple[str, ...], error: str) -> None:
    run = built.npumake("debug", *words, check=False)
    assert run.returncode == 2
    assert error in run.stdout + run.stderr
