"""What every chip's file promises. A new target is tested by being listed in TARGETS."""

import re
from pathlib import Path

import onnx
import pytest

from npumake.engine.lower import SUMMING
from npumake.errors import ProjectError
from npumake.targets import TARGETS
from npumake.targets.reader import read_target, target_file, target_names
from npumake.targets.spelled_functions import SPELLED_OUT

FOLDER = Path(__file__).parents[2] / "pipeline" / "npumake" / "targets"
every_target = pytest.mark.parametrize("name", target_names())


@every_target
def test_a_target_is_called_like_its_file(name):
    target = read_target(name)
    assert target.name == name == target_file(name).stem


@every_target
def test_a_target_says_how_it_rounds_and_on_which_grids(name):
    target = read_target(name)
    assert target.rounding in ("half_even", "half_up", "half_away", "twice")
    assert target.activations.dtype in ("int8", "uint8")
    assert target.weights.dtype == "int8"
    # A symmetric grid has zero point 0, which an unsigned one has at its end.
    assert not (target.activations.symmetric and target.activations.dtype == "uint8")


@every_target
def test_its_operators_are_those_of_onnx_each_once(name):
    operators = read_target(name).operators or ()
    known = {
        schema.name for schema in onnx.defs.get_all_schemas_with_history() if not schema.domain
    }
    assert set(operators) - known == set()
    assert len(set(operators)) == len(operators)


@every_target
def test_a_target_knows_what_it_runs(name):
    target = read_target(name)
    assert target.runs("Conv") == (target.operators != ())  # a chip without an NPU runs nothing
    assert target.runs("NoSuchOperator") == (target.operators is None)


@every_target
def test_a_target_runs_what_its_operators_spell_out(name):
    target = read_target(name)
    given = target.operators
    for function, parts in SPELLED_OUT.items():
        runs = given is None or function in given or set(parts) <= set(given)
        assert target.runs(function) == runs


@every_target
def test_an_editor_finds_the_schema(name):
    file = target_file(name)
    first = file.read_text(encoding="utf-8").splitlines()[0]
    schema = file.parent / first.removeprefix("# yaml-language-server: $schema=")
    assert schema.resolve() == FOLDER.parents[2] / "schemas" / "target.schema.json"
    assert schema.is_file()


def test_every_file_is_listed():
    files = FOLDER.rglob("*.yaml")
    assert sorted(f.relative_to(FOLDER).with_suffix("").as_posix() for f in files) == list(TARGETS)


def test_no_two_vendors_share_a_name():
    assert len(set(target_names())) == len(TARGETS)


def test_an_unknown_target_is_refused_with_the_nearest():
    with pytest.raises(ProjectError) as caught:
        read_target("rdkx5")
    assert caught.value.what == "unknown target `rdkx5`"
    assert caught.value.hint.startswith("did you mean `rdk-x")


@pytest.mark.parametrize("name", ["", "drobotics/rdk-x5", "../target", "rdk-x5.yaml"])
def test_a_path_is_no_name(name):
    with pytest.raises(ProjectError):
        target_file(name)


@every_target
def test_only_layers_hand_out_sums(name):
    assert set(read_target(name).sums) <= set(SUMMING)


@pytest.mark.parametrize("name", [n for n in target_names() if read_target(n).takes_int16("Conv")])
def test_a_target_with_int16_says_what_it_costs_or_that_it_is_not_published(name):
    text = target_file(name).read_text(encoding="utf-8")
    (remark,) = re.findall("^# int16_rate: (.+)$", text, re.MULTILINE)
    rate = read_target(name).cost.int16_rate
    assert (rate is None) == remark.startswith("not published")
    assert "int16_rate: " in text.replace("# int16_rate: ", "")
