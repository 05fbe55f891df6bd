"""A mask takes no codes from the scores that it leaves visible, however far down it reaches."""

from __future__ import annotations

import numpy as np
import pytest
from compilers.files import differences, made_of
from engine.operators import case
from quant.test_empty import built, outputs

from pipeline.engine.exact import ExactSession
from pipeline.engine.lower import lowered
from pipeline.engine.ort import OrtSession
from pipeline.errors import StageError
from pipeline.graph import parse_text, upgraded
from pipeline.kernels.measure import cosine
from pipeline.project.sections import Calibration
from pipeline.quant.calibration.observe import observe
from pipeline.quant.calibration.ranges import int16_ranges, ranges
from pipeline.quant.calibration.statistics import Statistics, merged_statistics
from pipeline.targets.reader import read_target

LOWEST = float(np.finfo(np.float32).min)
MASKS = (LOWEST, -1e9, -65504.0, -1e4, -100.0)
TOKENS, SIZE = 8, 16
SHAPE = (1, TOKENS, SIZE)
HEAD = "q = MatMul(x, wq)  k = MatMul(x, wk)  v = MatMul(x, wv)  kt = Transpose<perm=[0,2,1]>(k)  "
SCORES = HEAD + "raw = MatMul(q, kt)  s = Mul(raw, quarter)  "
TAIL = "  p = Softmax<axis=-1>(sm)  o = MatMul(p, v)  y = MatMul(o, wo)"
CAUSAL = np.triu(np.ones((TOKENS, TOKENS)), 1)
# How a mask is put into the scores: of a constant (TOKENS, TOKENS), or of `xm` that is fed.
CONSTANT = {
    "added": "sm = Add(s, m)",
    "added first": "sm = Add(m, s)",
    "subtracted": "sm = Sub(s, minus)",
    "added to a bias": "pm = Add(relative, m)  sm = Add(s, pm)",
    "before the scale": "am = Add(raw, m)  sm = Mul(am, quarter)",
    "multiplied, then subtracted": "sb = Mul(s, seen)  sm = Sub(sb, minus)",
}
FED = {
    "added": "sm = Add(s, xm)",
    "added to a bias": "pm = Add(relative, xm)  sm = Add(s, pm)",
    "of ones and zeros": "inv = Sub(one, xm)  mm = Mul(inv, far)  sm = Add(s, mm)",
}


def attention(how, mask, gain=1.0, **given):
    rng = np.random.default_rng(5)
    constants = {n: rng.normal(size=(SIZE, SIZE)) / np.sqrt(SIZE) for n in ("wq", "wk", "wv", "wo")}
    constants["wq"] = constants["wq"] * gain
    constants |= {"quarter": 0.25, "one": 1.0, "far": mask, "seen": 1.0 - CAUSAL}
    constants |= {"m": CAUSAL * mask + 0.0, "minus": CAUSAL * -mask + 0.0}
    constants["relative"] = rng.normal(size=(TOKENS, TOKENS))
    body = SCORES + how + TAIL
    words = set(body.replace("(", " ").replace(")", " ").replace(",", " ").split())
    read = {n: np.asarray(v, float).tolist() for n, v in constants.items() if n in words}
    return upgraded(parse_text(case(body, x=SHAPE, **given, **read))).with_shapes()


def feeds_of(mask=None, count=8):
    rng = np.random.default_rng(1)
    found = [{"x": rng.normal(size=SHAPE).astype(np.float32)} for _ in range(count)]
    for feed in found if mask is not None else ():
        hidden = np.arange(TOKENS) >= rng.integers(2, TOKENS + 1)
        fed = 1.0 - hidden if mask == "ones" else np.where(hidden, mask, 0.0)
        feed["xm"] = fed.astype(np.float32).reshape(1, 1, TOKENS)
    return found


def close(graph, feeds, name="ara240", method="max"):
    target = read_target(name)
    made = built(graph, feeds, target, method=method)
    program = lowered(made, target.rounding, target.runnable)
    meant = outputs(OrtSession(graph.to_bytes()), feeds)
    exact = outputs(ExactSession(program), feeds)
    step = np.abs(exact - outputs(OrtSession(made.to_bytes()), feeds)).max()
    assert step <= np.ptp(meant) / 50
    return cosine(meant, exact)


@pytest.mark.parametrize("gain", [1.0, 3.0])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("how", CONSTANT)
def test_attention_under_a_causal_mask_is_as_close_as_without(how, mask, gain):
    assert close(attention(CONSTANT[how], mask, gain), feeds_of()) > 0.99


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("how", FED)
def test_so_it_is_where_the_mask_is_fed(how, mask):
    graph = attention(FED[how], mask, xm=(1, 1, TOKENS))
    assert close(graph, feeds_of("ones" if "ones" in how else mask)) > 0.99


@pytest.mark.parametrize("name", ["rdk-x5", "sl1680", "nash-m", "onnx"])
@pytest.mark.parametrize("mask", [LOWEST, -1e4])
def test_so_it_is_on_every_kind_of_chip(mask, name):
    assert close(attention(CONSTANT["added"], mask), feeds_of(), name) > 0.99


@pytest.mark.parametrize("method", ["kl", "max_percentile", "mse"])
def test_so_it_is_by_every_method(method):
    assert close(attention(CONSTANT["added"], LOWEST), feeds_of(), method=method) > 0.99


@pytest.mark.parametrize("mask", [LOWEST, -1e4, -np.inf])
@pytest.mark.parametrize("how", ["added", "of ones and zeros"])
def test_litert_gives_the_codes_of_masked_attention(how, mask):
    if how == "added":
        made = made_of(attention(FED[how], 0.0, xm=(1, 1, TOKENS)), feeds_of(mask)[0])
    else:
        made = made_of(attention(FED[how], LOWEST, xm=(1, 1, TOKENS)), feeds_of("ones")[0])
    compared, wrong = differences(made)
    assert compared
    assert wrong == {}


def test_minus_infinity_masks():
    graph, feeds = attention(FED["added"], 0.0, xm=(1, 1, TOKENS)), feeds_of(-np.inf)
    assert close(graph, feeds) > 0.99


def test_a_row_that_is_masked_throughout_has_no_softmax():
    feeds = feeds_of(-np.inf)
    feeds[0]["xm"] = np.full_like(feeds[0]["xm"], -np.inf)
    with pytest.raises(StageError, match="no finite number"):
        observe(attention(FED["added"], 0.0, xm=(1, 1, TOKENS)), feeds)


def test_and_has_one_where_the_mask_is_a_number():
    feeds = feeds_of(-1e9)
    feeds[0]["xm"] = np.full_like(feeds[0]["xm"], -1e9)
    assert close(attention(FED["added"], 0.0, xm=(1, 1, TOKENS)), feeds) > 0.99


@pytest.mark.parametrize("mask", [LOWEST, -1e4, -100.0])
def test_the_range_ends_a_few_units_below_the_least_of_the_rows_largest(mask):
    graph = attention(CONSTANT["added"], mask)
    found = observe(graph, feeds_of())
    own = ranges(graph, found, Calibration("max"))["sm"]
    wide = int16_ranges(graph, found)["sm"]
    assert own.high == found.tensors["sm"].high
    assert -20 < own.low - found.peaks["sm"] < -5
    assert wide.low < own.low
    assert wide.low > -40


def test_scores_without_a_mask_keep_their_range():
    graph = attention("sm = Identity(s)", 0.0)
    found = observe(graph, feeds_of())
    own = ranges(graph, found, Calibration("max"))
    low, high = found.tensors["s"].low, found.tensors["s"].high
    assert any((each.low, each.high) == (low, high) for each in own.values())
    assert found.peaks == {}


def test_peaks_are_merged_and_kept(tmp_path):
    graph, feeds = attention(CONSTANT["added"], -1e4), feeds_of()
    whole = observe(graph, feeds)
    parts = observe(graph, feeds[:3]), observe(graph, feeds[3:], first=3)
    assert merged_statistics(*parts).peaks == whole.peaks
    whole.save(tmp_path / "statistics.npz")
    assert Statistics.load(tmp_path / "statistics.npz").peaks == whole.peaks
