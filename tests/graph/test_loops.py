"""A loop ends, or is an error; what ends is not touched."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import parse_text
from npumake.graph.loops import MAX_LOOP_ITERATIONS, ending

HEADER = '<ir_version: 9, opset_import: ["" : 20]> agraph'
MOST = "at most 1,048,576 turns are run"


def model(turns: str, goes: str, more: str) -> bytes:
    """A sum of x until it is large."""
    body = f"(int64 i, bool on, float s) => (bool more, float t) {{ t = Add(s, x) {more} }}"
    return parse_text(
        f"{HEADER} (float x, bool go) => (float y) <float large = {{1e30}}, bool yes = {{1}}, "
        f"int64 few = {{7}}, int64 many = {{1048577}}, int64 all = {{1048576}}> "
        f"{{ y = Loop({turns}, {goes}, x) <body = body {body}> }}"
    ).to_bytes()


def run(data: bytes, x: float) -> float:
    session = OrtSession(data)
    feeds = {"x": np.array(x, np.float32), "go": np.array(True)}
    (y,) = session.run(None, {name: feeds[name] for name in session.input_names})
    return float(y)


@pytest.mark.parametrize("turns", ["few", "all"])
@pytest.mark.parametrize("more", ["more = Identity(on)", "more = Less(t, large)"])
def test_a_loop_that_says_how_often_it_runs_is_as_it_was(turns, more):
    data = model(turns, "", more)
    assert ending(data) is data


def test_a_loop_that_its_condition_ends_computes_what_it_did():
    data = model("", "go", "more = Less(t, large)")
    assert ending(data) != data
    assert run(data, 2e29) == np.float32(1e30)
    assert run(data, 1e30) == np.float32(2e30)


@pytest.mark.parametrize("goes", ["", "yes"])
@pytest.mark.parametrize("more", ["more = Identity(on)", "more = Constant<value = bool {1}>()"])
def test_a_loop_that_says_that_it_never_ends_is_refused_before_it_runs(goes, more):
    with pytest.raises(GraphError, match=f"the loop `y` never ends; {MOST}"):
        OrtSession(model("", goes, more))
    with pytest.raises(GraphError, match=f"the loop `y` runs 1,048,577 times; {MOST}"):
        OrtSession(model("many", goes, more))


@pytest.mark.slow
def test_a_loop_that_turns_out_not_to_end_is_stopped():
    with pytest.raises(GraphError, match=f"the loop `y` does not end; {MOST}"):
        run(model("", "go", "more = Less(t, large)"), 0.0)


def test_a_loop_inside_a_branch_is_bounded_too():
    inside = (
        "(int64 i, bool on, float s) => (bool more, float t) { t = Add(s, x) more = Identity(on) }"
    )
    data = parse_text(
        f"{HEADER} (float x, bool go) => (float y) {{ y = If(go) <"
        f"then_branch = yes () => (float a) {{ a = Loop(, , x) <body = body {inside}> }}, "
        "else_branch = no () => (float b) { b = Neg(x) }> }"
    ).to_bytes()
    with pytest.raises(GraphError, match=r"the loop `.+` never ends"):
        OrtSession(data)


@pytest.mark.slow
def test_the_last_turn_that_is_allowed_is_run():
    data = model("", "go", "n = Cast<to = 7>(t) more = Less(n, all)")
    assert run(data, 1.0) == MAX_LOOP_ITERATIONS


@pytest.mark.parametrize("data", [b"", b"Loop", b"\x08\x09 no Loop of a model"])
def test_what_is_no_model_is_left_to_its_reader(data):
    assert ending(data) in (data, b"")
