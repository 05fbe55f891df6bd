"""`npumake perf`: the files of hb_perf, for a bundle, a pack, a project, and what Vela compiled."""

import json
import re

import pytest
import yaml

from workspaces import Workspace, lay_out

BUNDLE = "projects/digits/out/digits.rdk-x5.hybrid"
WARNING = "WARNING bpu model don't have per-layer perf info."


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_bundle_gets_the_documented_folder_and_the_documented_warning(built: Workspace) -> None:
    told = built.npumake("perf", BUNDLE).stdout
    assert WARNING in told
    assert re.search(
        r"latency +[\d.e-]+ ms \([\d.e-]+ to [\d.e-]+, extrapolated\), [\d.]+ FPS", told
    )
    assert "assumed: fitted on " in told
    assert names(built.root / "hb_perf_result" / "digits.rdk-x5") == {
        *(f"digits.rdk-x5.{kind}" for kind in ("html", "json", "png")),
        *(f"digits.rdk-x5_subgraph_0.{kind}" for kind in ("html", "json")),
    }


def test_the_same_bundle_gives_the_same_bytes(built: Workspace) -> None:
    for folder in ("a", "b"):
        built.npumake("perf", BUNDLE, "--html", folder, "--ddr", "8")
    one, other = (built.root / folder / "digits.rdk-x5" for folder in ("a", "b"))
    assert {p.name: p.read_bytes() for p in one.iterdir()} == {
        p.name: p.read_bytes() for p in other.iterdir()
    }


def test_a_project_is_built_and_debug_brings_its_layers(built: Workspace) -> None:
    with (built.project / "project.yaml").open("a") as project:
        project.write("compile: {debug: true, max_time_per_fc: 1000}\n")
    run = built.npumake("perf", "projects/digits", "--json", "--ddr", "8.5")
    first, second = json.loads(run.stdout)
    assert (first["target"], second["target"]) == ("rdk-x5", "ara240")
    assert first["FPS"] == pytest.approx(1000.0 / first["latency (ms)"])
    page = built.root / "hb_perf_result/digits.rdk-x5/digits.rdk-x5_subgraph_0.json"
    rows = json.loads(page.read_text())["layer details"]
    assert sum(row["OPs"] for row in rows) == first["OPs per frame"]
    assert WARNING not in built.npumake("perf", BUNDLE).stdout
    assert "debug                   : True" in built.npumake("info", BUNDLE).stdout


def test_every_model_of_a_pack_or_the_one_that_is_named(built: Workspace) -> None:
    other = "projects/digits/out/digits.ara240.hybrid"
    built.npumake("pack", BUNDLE, other, "-o", "both.hybrid")
    run = built.npumake("perf", "both.hybrid", "--json")
    assert [one["model name"] for one in json.loads(run.stdout)] == [
        "digits.rdk-x5",
        "digits.ara240",
    ]
    run = built.npumake("perf", "both.hybrid", "-m", "digits.ara240", "--json")
    assert [one["model name"] for one in json.loads(run.stdout)] == ["digits.ara240"]


def test_of_a_project_what_has_no_estimate_is_told_beside_what_has_one(built: Workspace) -> None:
    project = built.project / "project.yaml"
    text = project.read_text().partition("targets:")[0]
    project.write_text(text + "targets: [rdk-x5, tflite]\n")
    run = built.npumake("perf", "projects/digits", "--json")
    assert [one["target"] for one in json.loads(run.stdout)] == ["rdk-x5"]
    assert "digits.tflite.tflite: no estimate; perf is for a .hybrid" in run.stderr
    project.write_text(text + "targets: [tflite]\n")
    run = built.npumake("perf", "projects/digits", check=False)
    assert run.returncode == 3
    assert "none of the compiled files has an estimate" in run.stderr


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("core_num: 2", "`rdk-x5` runs a model on at most 1 of its cores"),
        ("max_time_per_fc: 999", "a function call of at most 999 us is too short"),
        ("input_source: {pixels: ddr}", "no input `pixels`"),
    ],
)
def test_what_the_chip_cannot_do_is_refused_where_it_is_written(
    built: Workspace, said: str, what: str
) -> None:
    with (built.project / "project.yaml").open("a") as project:
        project.write(f"compile: {{{said}}}\n")
    run = built.npumake("build", "digits:rdk-x5/compiled", check=False)
    assert run.returncode == 2
    assert what in run.stdout
    assert "project.yaml:" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (("absent.hybrid",), 3, "error:"),
        (("dodo.py",), 3, "error:"),
        ((BUNDLE, "--ddr", "0"), 2, "error: a DDR of 0.0 GB/s"),
        ((BUNDLE, "-m", "other"), 3, "error: no model `other`"),
        ((BUNDLE, "--html", "dodo.py"), 3, "error: cannot write"),
    ],
)
def test_a_mistake_is_one_error(built: Workspace, arguments, code, what) -> None:
    run = built.npumake("perf", *arguments, check=False)
    assert (run.returncode, run.stderr.count("error:")) == (code, 1)
    assert what in run.stderr


@pytest.mark.slow
def test_vela_s_own_figures_are_told_and_gate_the_build(tmp_path) -> None:
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    workspace = lay_out(tmp_path)
    file = workspace.project / "project.yaml"
    document = yaml.safe_load(file.read_text()) | {"targets": ["ethos-u65-256"]}
    file.write_text(yaml.safe_dump(document | {"gates": [{"max_latency_ms": 1.0}]}))
    workspace.npumake("build", "digits")
    [found] = json.loads(workspace.npumake("perf", "projects/digits", "--json").stdout)
    assert found["latency (ms)"] == pytest.approx(1000 * found["cycles"] / 1e9)  # its clock: 1 GHz
    assert found["FPS"] == pytest.approx(1000 / found["latency (ms)"])
    file.write_text(yaml.safe_dump(document | {"gates": [{"max_latency_ms": 0.001}]}))
    run = workspace.npumake("build", "digits", check=False)
    assert run.returncode == 6
    assert "ms; at most 0.001 is allowed" in run.stdout
