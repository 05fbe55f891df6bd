"""The plan: what is shared between variants and targets, and what has a twin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from npumake.errors import ProjectError
from npumake.make.build import Build
from npumake.make.memory import BuildMemory
from npumake.make.node import Node, plan_from
from npumake.make.plan import planned
from npumake.make.tasks import tasks
from npumake.project.document import parse_document
from npumake.project.reader import project_of
from npumake.stages.stage import every_stage
from npumake.targets.reader import read_target
from workspaces import Workspace, made

SHARED = ["original_float", "optimized_float", "samples", "statistics"]
HEAD = "model: {path: m.onnx}\ndata: {image: {files: s}}\n"
TWO = "targets: [rdk-x5, ara240]\n"


def nodes(text: str) -> Mapping[str, Node]:
    document = parse_document((HEAD + text).encode(), "p.yaml")
    return planned(project_of(document, "net", Path()), every_stage(), read_target).by_name


def test_a_variant_shares_what_it_agrees_on() -> None:
    found = nodes(TWO + "variants: {a: {calibration: {method: max}}}")
    assert [n.stage for n in found.values() if n.target is None] == SHARED
    calibrated = found["net@a:rdk-x5/calibrated"]
    assert found["net@a:rdk-x5/recipe"].inputs["statistics"] == "net:statistics"
    assert calibrated.inputs["recipe"] == "net@a:rdk-x5/recipe"
    assert calibrated.path == "out/@a/calibrated.rdk-x5.onnx"
    assert calibrated.group == "net@a"
    assert calibrated.short == "rdk-x5/calibrated"
    assert calibrated.twin is None


def test_two_variants_share_what_the_project_does_not() -> None:
    overlay = "inputs: {image: {mean: 1}}"
    found = nodes(TWO + f"variants: {{a: {{{overlay}}}, b: {{{overlay}, calibration: {{}}}}}}")
    assert found["net@b:rdk-x5/recipe"].inputs["statistics"] == "net@a:statistics"
    assert found["net@b:rdk-x5/calibrated"].twin == "net@a:rdk-x5/calibrated"
    assert "net@b:statistics" not in found


def test_what_can_only_be_the_same_has_a_twin_all_the_way_down() -> None:
    found = nodes(TWO + "variants: {a: {compile: {prefix: other}}}")
    assert found["net@a:ara240/compiled"].path == "out/@a/other.ara240.hybrid"
    assert found["net@a:ara240/compiled"].twin == "net:ara240/compiled"


def test_a_target_overlay_speaks_to_its_target_alone() -> None:
    found = nodes("targets: [rdk-x5, ara240: {calibration: {method: max}}]\n")
    methods = {
        n.target: n.params["calibration"]["method"]
        for n in found.values()
        if "calibration" in n.params
    }
    assert methods == {"rdk-x5": "kl", "ara240": "max"}
    assert found["net:ara240/recipe"].places["calibration.method"] == "p.yaml:3:50"


@pytest.mark.parametrize(
    ("overlay", "what"),
    [
        (
            "inputs: {image: {mean: 1}}",
            "`inputs` cannot differ by target: `original_float` is built",
        ),
        ("data: {image: {files: t}}", "`data` cannot differ by target: `samples` is built once"),
        ("targets: [rdk-x3]", "`targets` cannot differ by target"),
    ],
)
def test_a_target_overlay_of_a_shared_section_is_an_error_at_its_key(
    overlay: str, what: str
) -> None:
    with pytest.raises(ProjectError, match=what) as caught:
        nodes(f"targets: [rdk-x5: {{{overlay}}}]\n")
    assert str(caught.value.where).startswith("p.yaml:3:20") or "inputs" not in overlay


def test_every_node_stands_behind_its_inputs_and_its_twin() -> None:
    text = "matrix: {calibration.method: [max, kl], inputs.image.mean: [0, 1]}"
    seen: set[str] = set()
    for name, node in nodes(TWO + text).items():
        assert {*node.inputs.values(), *([node.twin] if node.twin else [])} <= seen
        seen.add(name)


def test_what_only_tells_how_close_the_others_are_comes_behind_them_all(tmp_path: Path) -> None:
    text = HEAD + TWO + "variants: {a: {calibration: {method: max}}}"
    document = parse_document(text.encode(), "p.yaml")
    plan = planned(project_of(document, "net", tmp_path), every_stage(), read_target)
    made = tasks(Build(tmp_path, plan, BuildMemory(tmp_path / "cache")), lambda build, node: None)
    order = [task["task_dep"] for task in made if (task["basename"], task["name"]) == ("net", None)]
    stages = [plan.node(name).stage for name in order[0] if ":" in name]
    told = ("compiled_check", "comparison")
    assert sorted(stages, key=lambda name: told.index(name) if name in told else -1) == stages
    assert len(stages) == len(plan.nodes)


def test_no_two_nodes_have_one_file() -> None:
    found = nodes(TWO + "matrix: {calibration.method: [max, kl], compile.prefix: [a, b]}")
    assert len({node.path for node in found.values()}) == len(found)


def test_a_plan_survives_as_json() -> None:
    from npumake.digest import plain

    document = parse_document((HEAD + TWO + "variants: {a: {}}").encode(), "p.yaml")
    plan = planned(project_of(document, "net", Path()), every_stage(), read_target)
    assert plan_from(plain(plan)) == plan


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "4"])
def test_five_percentiles_observe_the_samples_once(fresh: Workspace, workers: str) -> None:
    file = fresh.project / "project.yaml"
    shared = file.read_text().partition("targets:")[0]
    file.write_text(
        f"{shared}targets: [ara240]\nmatrix:\n  calibration.method: [max_percentile]\n"
        "  calibration.percentile: [0.9, 0.99, 0.999, 0.9999, 0.99999]\n"
        "variants: {same: {calibration: {method: max}}}\n"
    )
    run = fresh.doit("-n", workers)
    everything = made(run, "made") | made(run, "recalled")
    assert {node for node in everything if "/" not in node} == set(SHARED)
    assert len(everything) == len(SHARED) + 6 * 7
    assert {node for node in everything if node.startswith("@same")} <= made(run, "recalled")
    assert (fresh.project / "out" / "@max_percentile-0.9" / "digits.ara240.hybrid").is_file()
    only = fresh.npumake("list", "digits@same").stdout.splitlines()
    assert [line.split()[0] for line in only] == ["current"] * 6
    shown = fresh.npumake("show", "projects/digits/out/@same/digits.ara240.hybrid").stdout
    assert "made by compiled" in shown
