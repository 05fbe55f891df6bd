"""The contract of a stage: same inputs, same bytes; and an artifact survives its file."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from npumake import digest
from npumake.cli.projects import selected
from npumake.distribution import ThreadDistributor, distributing
from npumake.make.build import Build
from npumake.make.maker import run_stage
from npumake.make.node import Node
from npumake.stages import COMPUTED, PARTS, SCORES, STAGES
from npumake.stages.parameters import (
    ARTIFACT,
    Function,
    computing,
    function_of,
    input_types,
    parameters_of,
    part_named,
)
from npumake.stages.stage import SECTIONS, SPECIAL_INPUTS, artifact_of, stage_named
from workspaces import Workspace

# By stage, the project that has it, where the one with an evaluation has not.
HOMES = {
    "findings": "reported_once",
    "handover": "handed_once",
    "listings": "listed_once",
    "report": "reported_once",
}


def the_build(workspace: Workspace) -> Build:
    (build,) = selected(workspace.root, ["digits"], paranoid=False)
    return build


def a_build_with(stage: str, request: pytest.FixtureRequest) -> Build:
    """One of a project that has the stage."""
    return the_build(request.getfixturevalue(HOMES.get(stage, "scored_once")))


def node_of(build: Build, stage: str) -> Node:
    return next(node for node in build.plan.nodes if node.stage == stage)


@pytest.mark.slow(cases=21)
@pytest.mark.parametrize("stage", STAGES)
def test_making_it_again_gives_the_same_bytes_however_many_calls_run_at_a_time(
    request: pytest.FixtureRequest, stage: str, tmp_path: Path
) -> None:
    build = a_build_with(stage, request)
    node = node_of(build, stage)
    again = tmp_path / f"again{stage_named(stage).suffix}"
    with distributing(ThreadDistributor(3)):
        run_stage(build, node, build.made_inputs(node)).save(again)
    assert digest.of_file(again) == digest.of_file(build.artifact(node))


@pytest.mark.parametrize("stage", STAGES)
def test_an_artifact_survives_its_file(
    request: pytest.FixtureRequest, stage: str, tmp_path: Path
) -> None:
    build = a_build_with(stage, request)
    path = build.artifact(node_of(build, stage))
    copy = tmp_path / path.name
    artifact_of(stage).load(path).save(copy)
    assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("stage", STAGES)
def test_one_name_for_stage_function_module_and_docstring(stage: str) -> None:
    function = function_of(stage)
    module = inspect.getmodule(function)
    assert module is not None
    name = "score" if stage in SCORES else stage
    assert function.__name__ == name
    assert module.__name__ == stage_named(stage).modules[0] == f"npumake.stages.{name}"
    assert (module.__doc__ or "").startswith(f"{name}: ")


@pytest.mark.parametrize("stage", STAGES)
def test_an_input_is_what_the_stage_of_that_name_makes(stage: str) -> None:
    types = input_types(stage)
    for name in stage_named(stage).inputs:
        assert types[name] is artifact_of(name)


def parts() -> list[Function]:
    return [part_named(name) for name in PARTS]


@pytest.mark.parametrize("name", PARTS)
def test_a_part_takes_an_item_and_inputs_of_a_stage(name: str) -> None:
    hints = get_type_hints(part_named(name))
    assert (hints.pop("return"), hints.pop("item")) == (bytes, bytes)
    assert hints
    assert hints.keys() <= {ARTIFACT, *COMPUTED, *STAGES, *SECTIONS, *SPECIAL_INPUTS}


@pytest.mark.parametrize("name", COMPUTED)
def test_a_computed_input_is_what_its_function_returns(name: str) -> None:
    hint = get_type_hints(computing(name))["return"]
    readers = [
        parameter
        for function in (*map(function_of, STAGES), *map(computing, COMPUTED), *parts())
        for parameter in parameters_of(function)
        if parameter.keyword == name
    ]
    assert readers or name in SCORES.values()
    assert all(hint in (each.hint, *get_args(each.hint)) for each in readers)


@pytest.mark.parametrize("stage", STAGES)
def test_the_code_that_computes_an_input_is_in_the_key(stage: str) -> None:
    named = [*map(str, inspect.signature(function_of(stage)).parameters), SCORES.get(stage)]
    for name in COMPUTED.keys() & {*named}:
        assert computing(name).__module__ in stage_named(stage).modules


def test_a_parameter_that_nothing_provides_is_our_bug() -> None:
    with pytest.raises(TypeError, match="no stage or section is named `quantized`"):
        stage_named("compiled", earlier=())


def test_stages_behind_a_target_fan_out_and_the_others_do_not(built_once: Workspace) -> None:
    nodes = the_build(built_once).plan.nodes
    shared = {node.stage for node in nodes if node.target is None}
    assert shared == {"original_float", "optimized_float", "samples", "statistics"}
    assert [n.target for n in nodes if n.stage == "quantized"] == ["rdk-x5", "ara240"]
