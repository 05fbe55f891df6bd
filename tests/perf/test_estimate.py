"""The roofline: what the published figures allow, and nothing where they are absent."""

import base64
import io
import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npumake.bundle.archive import Bundle, zipped
from npumake.bundle.program import Instruction, Tensor
from npumake.engine.lower import lowered
from npumake.errors import GraphError
from npumake.graph import parse_text
from npumake.perf.assumed import latency_text
from npumake.perf.documents import document, subgraph_document
from npumake.perf.estimate import (
    bound_of,
    estimate_bundle,
    function_calls,
    parts_of,
    roof_of,
    times_of,
)
from npumake.perf.latency import bundle_latency
from npumake.perf.layers import layers_of
from npumake.perf.page import model_page, subgraph_page
from npumake.perf.picture import boxes_of, levels_of, picture
from npumake.perf.vela import vela_of
from npumake.project.compiling import EFFECTS, Compile
from npumake.targets.cost import Cost
from npumake.targets.reader import read_target
from perf.test_layers import CONV, PROGRAM

X5, X3 = read_target("rdk-x5"), read_target("rdk-x3")
COST = Cost(macs=1e9, ddr=1e6, on_chip=0)
UNFITTED = replace(X5, cost=replace(X5.cost, fitted=None))
CHIP = replace(X5, cost=COST)
BUNDLE = Bundle("rdk-x5", PROGRAM, {})


def test_a_layer_takes_the_longer_of_computing_and_moving():
    conv, pool = layers_of(PROGRAM, 0)
    assert roof_of(COST, 1).time(conv) == conv.moved / 1e6
    assert roof_of(Cost(macs=1e3, ddr=1e6), 1).time(conv) == conv.macs / 1e3
    found = bundle_latency(BUNDLE, CHIP)
    assert found.milliseconds == pytest.approx((conv.moved + pool.moved) / 1e3)
    assert not found.is_bound


def test_a_figure_that_is_not_published_leaves_the_latency_unknown():
    found = estimate_bundle("m", BUNDLE, UNFITTED)
    assert (found.latency, found.interval, found.fps) == (None, None, None)
    assert (found.on_board, found.moved_interval) == (None, None)
    assert found.at_least == pytest.approx(layers_of(PROGRAM, None)[0].macs / 5e12)
    assert any("its DDR bandwidth is not published" in said for said in found.assumptions)
    assert "compute bound only: " in latency_text(found.latency, found.at_least)


def test_the_project_s_bandwidth_counts_where_none_is_published():
    board = replace(BUNDLE, settings={**BUNDLE.settings, "ddr": 2.0})
    known = replace(UNFITTED, cost=replace(UNFITTED.cost, ddr=2e9))
    found = bundle_latency(board, UNFITTED)
    assert not found.is_bound
    assert found.milliseconds == bundle_latency(BUNDLE, known).milliseconds
    estimate = estimate_bundle("m", board, UNFITTED)
    assert estimate.latency == pytest.approx(found.milliseconds / 1e3)
    assert "2 GB/s of DDR, as given" in estimate.assumptions
    faster = estimate_bundle("m", board, UNFITTED, 4e9)  # --ddr outranks it
    assert faster.latency < estimate.latency


@pytest.mark.parametrize("ddr", ["fast", 0, -1, float("inf"), float("nan"), True, [1]])
def test_a_bandwidth_that_is_none_is_an_error(ddr):
    board = replace(BUNDLE, settings={**BUNDLE.settings, "ddr": ddr})
    with pytest.raises(GraphError, match="not a number of GB/s"):
        bundle_latency(board, UNFITTED)


def test_without_a_bandwidth_computing_alone_is_a_lower_bound():
    macs = layers_of(PROGRAM, None)[0].macs
    found = bundle_latency(BUNDLE, UNFITTED)
    assert (found.milliseconds, found.is_bound) == (pytest.approx(1e3 * macs / 5e12), True)
    assert bundle_latency(BUNDLE, read_target("sl1640")) is None
    whole = bundle_latency(BUNDLE, replace(X5, cost=replace(UNFITTED.cost, ddr=1e9)))
    assert whole.milliseconds >= found.milliseconds


def test_a_bandwidth_that_is_given_makes_it_known():
    found = estimate_bundle("m", BUNDLE, UNFITTED, ddr=1e6)
    assert found.latency == pytest.approx((found.loaded + found.stored) / 1e6)
    assert found.fps == 1.0 / found.latency


def test_two_cores_of_the_x3_compute_twice_as_fast_and_load_no_faster():
    one, two = roof_of(replace(X3.cost, ddr=1e9), 1), roof_of(replace(X3.cost, ddr=1e9), 2)
    assert (two.macs, two.ddr) == (2 * one.macs, one.ddr)


def test_a_program_that_runs_on_the_cpu_alone_has_no_latency():
    alone = replace(PROGRAM, instructions=(), outputs=("x",))
    assert bundle_latency(Bundle("rdk-x5", alone, {}), CHIP) is None
    assert bundle_latency(Bundle("rdk-x5", alone, {}), X5) is None
    assert estimate_bundle("m", Bundle("rdk-x5", alone, {}), CHIP).latency is None


@given(st.lists(st.floats(0.0, 3.0), max_size=20), st.floats(0.5, 4.0))
def test_a_function_call_is_cut_where_it_would_take_longer(times, limit):
    calls = function_calls(times, limit)
    assert calls <= len(times)
    assert sum(times) <= calls * max([limit, *times]) + 1e-9


def test_a_limit_cuts_the_estimate_into_calls():
    bundle = replace(BUNDLE, settings={"max_time_per_fc": 1000})
    assert estimate_bundle("m", bundle, UNFITTED, ddr=2e6).subgraphs[0].calls == 1
    assert estimate_bundle("m", bundle, UNFITTED, ddr=1e5).subgraphs[0].calls == 2
    assert estimate_bundle("m", bundle, UNFITTED).subgraphs[0].calls is None


def test_the_nodes_in_the_body_of_a_loop_are_on_the_cpu_by_name():
    graph = parse_text("""<ir_version: 8, opset_import: ["" : 17]>
        a (float[1,2] x) => (float[1,2] y) <int64 few = {7}> { y = Loop(few, , x) <body =
        body (int64 i, bool on, float[1,2] s) => (bool more, float[1,2] t)
        { [plus] t = Add(s, x) [same] more = Identity(on) }> }""")
    bundle = Bundle("sl1680", lowered(graph, "half_even"), {})
    found = estimate_bundle("m", bundle, read_target("sl1680"), None)
    assert found.on_cpu == ("y", "y/plus", "y/same")


def test_layers_are_told_where_debug_is_on():
    quiet = estimate_bundle("m", BUNDLE, X5)
    loud = estimate_bundle("m", replace(BUNDLE, settings={"debug": True}), X5)
    assert "layer details" not in subgraph_document(quiet.subgraphs[0], quiet)
    rows = subgraph_document(loud.subgraphs[0], loud)["layer details"]
    assert [row["layer name"] for row in rows] == ["conv", "pool"]
    assert "Layer Details</h2>" in subgraph_page(loud.subgraphs[0], loud)
    assert "Layer Details</h2>" not in subgraph_page(quiet.subgraphs[0], quiet)


def test_the_sums_of_the_model_are_those_of_its_layers():
    found, layers = estimate_bundle("m", BUNDLE, CHIP), layers_of(PROGRAM, 0)
    told = json.loads(json.dumps(document(found)))
    assert told["OPs per frame"] == sum(layer.ops for layer in layers)
    assert told["DDR bytes per frame"] == sum(layer.moved for layer in layers)
    assert told["FPS"] == pytest.approx(1000.0 / told["latency (ms)"])


def test_a_page_holds_all_it_shows_and_is_made_for_light_and_dark():
    png = picture(PROGRAM, "m")
    text = model_page(estimate_bundle("<m>", BUNDLE, X5), png)
    assert base64.b64encode(png).decode() in text
    assert "http" not in text
    assert "prefers-color-scheme: dark" in text
    assert "<m>" not in text
    for title in ("Model Performance Summary", "Details", "BIN Model Structure"):
        assert f"{title}</h2>" in text


def test_a_picture_is_the_same_bytes_again():
    assert picture(PROGRAM, "m") == picture(PROGRAM, "m")
    assert picture(PROGRAM, "m").startswith(b"\x89PNG")


def test_every_key_of_the_section_says_what_comes_of_it():
    assert list(EFFECTS) == list(Compile.__dataclass_fields__)


@pytest.mark.parametrize(
    "damaged",
    [
        replace(PROGRAM, instructions=(replace(CONV, constants={}),)),
        replace(PROGRAM, tensors={**PROGRAM.tensors, "c": Tensor((1 << 60,), "int8", 1.0)}),
        replace(PROGRAM, instructions=(Instruction("max_pool", "\ud800", ("x",), ("y",)),)),
        replace(PROGRAM, instructions=(Instruction("max_pool", "p", ("x",), ("y",)),)),
    ],
    ids=["no weight", "too large", "no name", "no kernel"],
)
def test_a_stranger_s_program_that_fits_no_kernel_is_refused(damaged):
    with pytest.raises(GraphError, match=r"no constant|larger than any|is not text|cannot be"):
        estimate_bundle("m", Bundle("rdk-x5", damaged, {}), X5)


@pytest.mark.parametrize("given", ["2", [1], None, -1, True, 1.5, 1 << 60])
@pytest.mark.parametrize("key", ["core_num", "max_time_per_fc"])
def test_a_stranger_s_setting_that_is_no_number_is_refused(key, given):
    with pytest.raises(GraphError, match=f"`{key}` in its manifest is"):
        estimate_bundle("m", replace(BUNDLE, settings={key: given}), X5)


SUMMARY = {
    "inference_time": 0.001,
    "cycles_total": 7.0,
    **{
        f"{memory}_{what}_{way}_bytes": 1.0
        for memory in ("dram", "off_chip_flash")
        for what in ("feature_map", "weight")
        for way in ("read", "write")
    },
}
LAYER = {"Name": "c", "NNG Operator": "Conv", "Target": "NPU", "MAC Count": 1.0, "Op Cycles": 2.0}
VELA = {
    "summary": SUMMARY,
    "layers": [LAYER],
    "operators": {"npu": 1, "cpu": 0},
    "tool": "vela 4",
}


def without(*route):
    """The estimate less what the route leads to, and with things of other types in its place."""
    for new in (None, [], {}, "x", 1e999, -1, True):
        told = json.loads(json.dumps(VELA))
        inside = told
        for key in route[:-1]:
            inside = inside[key]
        inside[route[-1]] = new
        yield json.dumps(told)
    del inside[route[-1]]
    yield json.dumps(told)


ROUTES = [
    *[(key,) for key in VELA],
    *[("summary", key) for key in SUMMARY],
    ("layers", 0),
    *[("layers", 0, key) for key in LAYER],
    *[("operators", key) for key in VELA["operators"]],
]


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_an_estimate_of_other_types_is_refused_or_read(route):
    for told in without(*route):
        file = io.BytesIO(zipped({"vela.json": told.encode()}))
        with suppress(GraphError):
            assert vela_of(file, "m.tflite")["latency (ms)"] == 1.0


@pytest.mark.parametrize("told", ["[]", "{}", '{"summary": [], "layers": 1}', "NaN", "\0"])
def test_an_estimate_that_is_none_is_refused(told):
    with pytest.raises(GraphError, match="no readable estimate of Vela"):
        vela_of(io.BytesIO(zipped({"vela.json": told.encode()})), "m.tflite")


def test_a_tensor_made_twice_draws_no_circle():
    steps = [("x", "q"), ("q", "c"), ("c", "q"), ("q", "y")]
    twice = tuple(Instruction("onnx", f"{a}{b}", (a,), (b,)) for a, b in steps)
    boxes = boxes_of(replace(PROGRAM, instructions=twice), "m")
    assert list(levels_of(boxes).values()) == [0, 1, 2, 3]


def _widened(program):
    tensors = {
        name: replace(tensor, dtype="int16") if name in CONV.inputs else tensor
        for name, tensor in program.tensors.items()
    }
    return replace(program, tensors=tensors)


@pytest.mark.parametrize("cost", [COST, X5.cost], ids=["roofline", "fitted"])
def test_int16_products_count_at_the_int16_rate_and_int8_ones_as_before(cost):
    for program, slower in ((PROGRAM, False), (_widened(PROGRAM), True)):
        (layers,) = parts_of(layers_of(program, 0))
        busy = [replace(layer, loaded=0, stored=0) for layer in layers]
        now, then = (sum(times_of(busy, replace(cost, int16_rate=rate), 1)) for rate in (0.5, None))
        assert (now > then) is slower
        bounds = [bound_of(busy, replace(cost, int16_rate=rate), 1) for rate in (0.5, None)]
        assert bounds[0] == pytest.approx(bounds[1] * (2 if slower else 1))


def test_an_estimate_says_what_int16_costs_or_that_it_is_not_published():
    wide = replace(BUNDLE, program=_widened(PROGRAM))
    known = replace(CHIP, cost=replace(COST, int16_rate=0.25))
    assert "take 4 times as long" in " ".join(estimate_bundle("m", wide, known).assumptions)
    for target in (X5, CHIP):
        assert "theirs is not published" in " ".join(estimate_bundle("m", wide, target).assumptions)
        assert "int16" not in " ".join(estimate_bundle("m", BUNDLE, target).assumptions)
