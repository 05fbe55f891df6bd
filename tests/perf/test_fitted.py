"""The fitted estimate: within sane bounds, monotone, and what its script fits."""

import re
from dataclasses import fields, replace
from html import escape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npumake.bundle.archive import Bundle
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.perf.documents import document
from npumake.perf.estimate import estimate_bundle, latency_of
from npumake.perf.fitted import computing, seconds
from npumake.perf.kinds import Work
from npumake.perf.latency import bundle_latency
from npumake.perf.layers import LayerCost, layers_of
from npumake.perf.page import model_page
from npumake.targets.reader import read_target, target_file, target_names
from npumake.targets.target import Target
from perf.test_estimate import BUNDLE, X5
from perf.test_layers import CONV, PROGRAM
from workspaces import REPO, shared_data

FITTED = [read_target(name) for name in target_names() if read_target(name).cost.fitted]
RATES = ("conv", "table", "arithmetic", "concat", "mixed", "ddr")
FIT = X5.cost.fitted
AMOUNT = st.integers(0, 10**12)
AGAIN = "run `python benchmarks/fit_cost.py --write` and review the errors"
KINDS = st.sampled_from(["conv", "table", "arithmetic", "concat", "mixed", None])


def layer(kind: str | None, amount: int, moved: int, channels: int = 0) -> LayerCost:
    macs = amount if kind == "conv" else 0
    return LayerCost("l", "l", 0, macs, 0, moved, 0, (), Work(kind, amount, channels))


LAYER = st.builds(layer, KINDS, AMOUNT, AMOUNT, st.integers(0, 64))
LAYERS = st.lists(LAYER, max_size=8)


@given(LAYERS)
def test_the_layers_add_up_to_no_less_than_computing_or_moving_alone_and_no_more_than_both(layers):
    whole = sum(seconds(layers, FIT))
    computed = sum(computing(each, FIT) for each in layers)
    moving = sum(each.moved for each in layers) / FIT.ddr
    assert max(computed, moving) <= whole * (1 + 1e-9)
    assert whole <= (computed + moving) * (1 + 1e-9)


@given(LAYERS, LAYER)
def test_another_layer_takes_no_less(layers, more):
    assert sum(seconds([*layers, more], FIT)) >= sum(seconds(layers, FIT)) * (1 - 1e-9)


@given(LAYERS.filter(bool), st.sampled_from(RATES))
def test_what_is_faster_takes_no_longer(layers, rate):
    faster = replace(FIT, **{rate: 2 * getattr(FIT, rate)})
    assert sum(seconds(layers, faster)) <= sum(seconds(layers, FIT)) * (1 + 1e-9)


def test_few_channels_leave_lanes_idle():
    few, all_, many = (computing(layer("conv", 1000, 0, n), FIT) for n in (1, FIT.lanes, 999))
    assert few == pytest.approx(FIT.lanes * all_)
    assert all_ == many


@pytest.mark.parametrize("target", FITTED, ids=lambda target: target.name)
def test_a_fitted_target_says_what_on_and_its_interval_holds_the_estimate(target: Target):
    fitted = target.cost.fitted
    assert all(low < 1 < high for low, high in (fitted.latency, fitted.bytes))
    assert any("left out of the fit" in line for line in fitted.on)
    assert fitted.conv <= target.cost.macs  # no unit is faster than its peak


def test_the_estimate_is_above_the_bound_and_within_its_interval():
    found = estimate_bundle("m", BUNDLE, X5)
    low, high = found.interval
    assert found.at_least <= low < found.latency < high
    assert found.on_board == found.latency + FIT.board
    less, more = found.moved_interval
    assert less < found.loaded + found.stored < more
    assert bundle_latency(BUNDLE, X5).milliseconds == pytest.approx(1000 * found.latency)


def test_a_model_smaller_than_all_it_was_fitted_on_is_extrapolated():
    found, low = estimate_bundle("m", BUNDLE, X5), FIT.seconds[0]
    assert found.latency < low
    assert found.extrapolated
    assert "extrapolated" in latency_of(found)
    assert document(found)["extrapolated"]
    assert "extrapolated" in str(bundle_latency(BUNDLE, X5))
    within = replace(FIT, seconds=(0.0, low))
    chip = replace(X5, cost=replace(X5.cost, fitted=within))
    assert "extrapolated" not in latency_of(estimate_bundle("m", BUNDLE, chip))


def test_it_is_told_what_it_was_fitted_on():
    found = estimate_bundle("m", BUNDLE, X5)
    assert set(FIT.on) <= set(found.assumptions)
    assert escape(FIT.on[0]) in model_page(found, b"")
    told = document(found)
    assert told["latency interval (ms)"] == [pytest.approx(1000 * t) for t in found.interval]
    assert told["DDR bytes interval"] == list(found.moved_interval)


def test_a_bandwidth_of_yours_takes_the_place_of_the_fitted_one():
    slow, fast = (estimate_bundle("m", BUNDLE, X5, ddr=ddr).latency for ddr in (1e8, 1e12))
    assert slow > estimate_bundle("m", BUNDLE, X5).latency > fast


def test_a_camera_in_nv12_gives_half_the_bytes():
    fed = replace(BUNDLE, provenance={"inputs": {"x": {"fed_type": "nv12"}}})
    plain = replace(BUNDLE, provenance={"inputs": {"x": {"fed_type": "rgb"}, "y": None}})
    found = [estimate_bundle("m", bundle, X5).loaded for bundle in (fed, plain, BUNDLE)]
    assert found[0] < found[1] == found[2]


def wide(channels: int) -> Program:
    """PROGRAM's Conv with other channels, alone."""
    weight = np.zeros((channels, 4, 3, 3), np.int8)
    conv = replace(CONV, constants={**CONV.constants, "weight": weight})
    quantize, _, _, dequantize = PROGRAM.instructions
    made = {
        "c": Tensor((1, channels, 6, 6), "int8", 1.0),
        "y": Tensor((1, channels, 6, 6), "float32"),
    }
    steps = (quantize, conv, replace(dequantize, inputs=("c",)))
    return replace(PROGRAM, tensors={**PROGRAM.tensors, **made}, instructions=steps)


def test_a_wider_conv_takes_longer():
    times = [
        estimate_bundle("m", Bundle("rdk-x5", wide(n), {}), X5).latency for n in (8, 16, 64, 512)
    ]
    assert times == sorted(times)
    assert len(set(times)) == len(times)


def silu(*steps: Instruction) -> float:
    """Seconds of what follows a Conv."""
    names = {name: Tensor((1, 8, 6, 6), "int8", 1.0) for name in "csy"}
    program = replace(
        PROGRAM,
        tensors={**PROGRAM.tensors, **names},
        instructions=(*PROGRAM.instructions[:2], *steps),
    )
    return sum(computing(each, FIT) for each in layers_of(program, 1 << 20))


def test_x_times_sigmoid_x_costs_one_table_whether_one_instruction_or_two():
    one = silu(Instruction("lookup", "t", ("c",), ("y",)))
    two = silu(
        Instruction("lookup", "t", ("c",), ("s",)), Instruction("mul", "m", ("c", "s"), ("y",))
    )
    assert one == two


@pytest.mark.slow
@pytest.mark.skipif(
    not (shared_data().parent / "oracle" / "tables").is_dir(), reason="shared/oracle is not here"
)
def test_the_script_fits_what_the_target_s_file_says(monkeypatch):
    """On the tables that are here; the held-out errors too."""
    monkeypatch.syspath_prepend(str(REPO / "benchmarks"))
    import costs
    import fit_cost

    best, times, moved = fit_cost.fitted(list(costs.known()))
    for field in fields(best):
        mine, committed = getattr(best, field.name), getattr(FIT, field.name)
        if field.name != "on":
            assert mine == pytest.approx(committed, rel=0.02), f"{field.name}: {AGAIN}"
    for line, committed in zip(fit_cost.said(times, moved), FIT.on, strict=True):
        words, figures = zip(*map(parts, (line, committed)), strict=True)
        assert words[0] == words[1], AGAIN
        assert figures[0] == pytest.approx(figures[1], abs=0.5), AGAIN
    text, block = target_file("rdk-x5").read_text(), fit_cost.block(best, times, moved)
    again = fit_cost.written(text, block)
    assert again.count("fitted:\n") == 1
    assert fit_cost.written(again, block) == again
    assert again.partition("gemm_as_conv")[2] == text.partition("gemm_as_conv")[2]


def parts(line: str) -> tuple[str, list[float]]:
    """The words and the figures of a sentence."""
    return re.sub(r"[\d.]+", "", line), [float(n) for n in re.findall(r"\d+(?:\.\d+)?", line)]
