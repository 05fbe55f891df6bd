"""`migrate` evens channels out through SiLU and hard-swish: the same function, in 8 bits alone."""

import numpy as np
import onnx
import pytest

from npumake.custom.operators import NO_OPERATORS
from npumake.data.samples import Samples
from npumake.debug.diagnosis.suggestions import CalibrationInputs, remedied
from npumake.engine.float_session import float_session
from npumake.graph import parse_text
from npumake.kernels.measure import cosine
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.correction.rescale_groups import find_rescale_groups, rescaled
from npumake.quant.correction.self_gates import self_gate
from npumake.quant.precision.int16_share import int16_share
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.candidates import with_gated_candidates
from npumake.quant.search.figures import evaluator_of
from npumake.quant.search.methods import plain_recipe
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

CHANNELS = 16
RNG = np.random.default_rng(5)
EVEN = np.ones(CHANNELS)
UNEVEN = np.geomspace(0.03, 30, CHANNELS)
GATES = {
    "silu": "s = Sigmoid(a)  m = Mul(a, s)",
    "silu, product turned": "s = Sigmoid(a)  m = Mul(s, a)",
    "swish": "m = Swish(a)",
    "hard-swish": "m = HardSwish(a)",
}
SUMS = "s = Sigmoid(a)  p = Mul(a, s)  b = Conv(x, u)  t = Sigmoid(b)  q = Mul(b, t)  m = Add(p, q)"
FEEDS = [{"x": RNG.normal(size=(1, 4, 12, 12)).astype(np.float32)} for _ in range(24)]
SAMPLES = Samples(tuple(map(str, range(16))), FEEDS.__getitem__)


def numbers(values):
    return ",".join(repr(float(value)) for value in np.ravel(values))


def network(body, sizes, scale=1.0):
    """1x1 Conv to channels of these sizes, the gate, a depthwise Conv that makes them alike."""
    rows = np.random.default_rng(1).normal(size=(2, CHANNELS, 4)) * sizes[:, None] * scale
    taps = np.random.default_rng(2).normal(size=(CHANNELS, 9)) / sizes[:, None]
    constants = (
        f"float[{CHANNELS},4,1,1] v = {{{numbers(rows[0])}}}, "
        f"float[{CHANNELS},4,1,1] u = {{{numbers(rows[1])}}}, "
        f"float[{CHANNELS},1,3,3] w = {{{numbers(taps)}}}"
    )
    return parse_text(
        '<ir_version: 10, opset_import: ["" : 24]>\n'
        f"a (float[1,4,12,12] x) => (float[1,{CHANNELS},10,10] y) <{constants}> "
        f"{{ a = Conv(x, v)  {body}  y = Conv<group={CHANNELS}>(m, w) }}",
    )


def migrated(graph):
    asked = Quantization(migrate=True)
    target = read_target("ara240")
    made = recipe(
        graph, observe(graph, SAMPLES), SAMPLES, Calibration("max"), target, quantization=asked
    )
    return made, quantized(calibrated(graph, made, SAMPLES, target, quantization=asked), target)


def outputs(graph):
    session = float_session(graph)
    return np.concatenate([session.run(None, feed)[0] for feed in FEEDS[16:]])


@pytest.mark.parametrize("body", [*GATES.values(), SUMS], ids=[*GATES, "sum of two"])
def test_uneven_channels_pass_a_self_gated_activation_in_8_bits(body):
    graph = network(body, UNEVEN)
    meant = outputs(graph)
    target = read_target("ara240")
    plain = recipe(graph, observe(graph, SAMPLES), SAMPLES, Calibration("max"), target)
    before = cosine(meant, outputs(quantized(calibrated(graph, plain, SAMPLES, target), target)))
    made, file = migrated(graph)
    same = rescaled(graph, made.factors)
    onnx.checker.check_model(onnx.load_from_string(same.to_bytes()), full_check=True)
    assert np.abs(outputs(same) - meant).max() <= 1e-4 * np.abs(meant).max()
    after = cosine(meant, outputs(file))
    assert 1 - after < (1 - before) / 20
    assert int16_share(file) == 0


@pytest.mark.parametrize("body", GATES.values(), ids=GATES)
def test_even_channels_cost_no_layer(body):
    made, _ = migrated(network(body, EVEN))
    assert not made.factors


@pytest.mark.slow
def test_a_search_finds_it_before_it_spends_int16():
    graph, target = network(GATES["silu"], UNEVEN), read_target("ara240")
    for calibration in (Calibration("default"), Calibration(recipe="best")):
        made = recipe(graph, observe(graph, SAMPLES), SAMPLES, calibration, target)
        assert "migrate" in made.switches
        assert "widen" not in made.switches
        starved = [trial for trial in made.trials if "migrate" not in trial.what]
        assert [(trial.what, trial.kept) for trial in starved] == [("max", False)]


def test_each_method_is_tried_both_ways_where_max_does_not_tell():
    graph, target = network(GATES["silu"], UNEVEN), read_target("ara240")
    evaluator = evaluator_of(graph, SAMPLES, Calibration("default"), target)
    base = evaluator.rescaled_model(())
    methods = [Calibration(name) for name in ("kl", "mse")]
    plain = [plain_recipe(graph, base.statistics, method, symmetric=False) for method in methods]
    tried, rejected = with_gated_candidates(plain, evaluator)
    assert [(one.method, one.switches) for one in tried] == [
        *(("kl", ()), ("mse", ())),
        *(("kl", ("migrate",)), ("mse", ("migrate",))),
    ]
    assert not rejected


def test_a_project_that_excludes_it_keeps_its_layers():
    graph, target = network(GATES["silu"], UNEVEN), read_target("ara240")
    asked = Quantization(migrate=False)
    statistics, best = observe(graph, SAMPLES), Calibration("default")
    assert not recipe(graph, statistics, SAMPLES, best, target, quantization=asked).factors


@pytest.mark.parametrize(
    "body",
    [
        "s = Sigmoid(a)  m = Mul(a, s)  e = Exp(s)",  # the gate has another reader
        "s = Sigmoid(x)  t = Conv(s, v)  m = Mul(a, t)",
        "m = Swish<alpha=1.7>(a)",
        "s = Tanh(a)  m = Mul(a, s)",
    ],
)
def test_what_is_no_plain_self_gate_passes_nothing(body):
    graph = network(body, UNEVEN)
    assert not any(group.gates for group in find_rescale_groups(graph, gated=True))
    assert not any(self_gate(node) for node in graph.nodes() if node.op_type in ("Tanh", "Exp"))


def test_a_build_whose_channels_starve_is_advised_to_migrate():
    graph, target = network(GATES["silu"], UNEVEN), read_target("ara240")
    statistics, calibration = observe(graph, SAMPLES), Calibration("max")
    made = recipe(graph, statistics, SAMPLES, calibration, target)
    broken = CalibrationInputs(
        graph, statistics, made, SAMPLES, target, NO_OPERATORS, calibration, DEFAULT
    )
    remedy = remedied(broken, "y", is_misfit=False, enough=0.999)
    assert remedy is not None
    assert remedy.yaml == "quantization: {migrate: true}"
    _, file = migrated(graph)
    assert cosine(outputs(graph), outputs(file)) > remedy.before
    assert remedy.after > remedy.before
