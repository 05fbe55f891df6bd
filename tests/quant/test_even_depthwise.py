"""`even_depthwise` evens channels out in front of depthwise layers: no weight loses, none clips."""

import itertools

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.engine.float_session import float_session
from npumake.graph import array, parse_text
from npumake.kernels.measure import cosine
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.correction.corrections import EVEN, MIGRATE
from npumake.quant.correction.rescale_groups import rescaled
from npumake.quant.search.candidates import MAX_ERRORS
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target
from quant.fidelity_scores import score_of_losses
from trained import PER_CHANNEL, PER_TENSOR
from workspaces import few

CHANNELS = 16
RNG = np.random.default_rng(5)
SIZES = np.geomspace(0.1, 1.0, CHANNELS)
FEEDS = [{"x": RNG.normal(size=(1, 4, 12, 12)).astype(np.float32)} for _ in range(40)]
SAMPLES = Samples(tuple(map(str, range(16))), FEEDS.__getitem__)
ACTIVATIONS = {
    "none": "m = MaxPool<kernel_shape=[1,1]>(a)",
    "relu": "m = Relu(a)",
    "leaky": "m = LeakyRelu(a)",
    "pool": "r = Relu(a)  m = MaxPool<kernel_shape=[2,2]>(r)",
}
LIMIT = 3.0  # the largest channels reach it
CLIP = "m = Clip(a, zero, limit)"
SPACE = [*itertools.product((*ACTIVATIONS.values(), CLIP), ("ara240", "rdk-x5"))]
SAMPLED = SPACE[::5]
DEPTHWISE = f"d = Conv<group={CHANNELS}>(m, v)"
DENSE = "d = Conv(m, v)"


def numbers(values):
    return ",".join(repr(float(value)) for value in np.ravel(values))


def network(between="m = Relu(a)", reader=DEPTHWISE, sizes=SIZES):
    """The tensor in front of the reader has channels of these sizes."""
    rng = np.random.default_rng(3)
    c, inputs = len(sizes), 1 if reader == DEPTHWISE else len(sizes)
    w = rng.normal(size=(c, 4, 1, 1)) * np.reshape(sizes, (-1, 1, 1, 1))
    v = rng.normal(size=(c, inputs, 3, 3)) / np.reshape(sizes, (-1, 1, 1, 1))
    u = rng.normal(size=(3, c, 1, 1))
    text = (
        "a (float[1,4,12,12] x) => (float[] y) <"
        f"float[{c},4,1,1] w = {{{numbers(w)}}}, float[{c},{inputs},3,3] v = {{{numbers(v)}}}, "
        f"float[3,{c},1,1] u = {{{numbers(u)}}}, float zero = {{0.0}}, "
        f"float limit = {{{LIMIT}}}> "
        f"{{ a = Conv(x, w)  {between}  {reader}  e = Relu(d)  y = Conv(e, u) }}"
    )
    return parse_text(text).with_shapes()


def recipe_of(graph, calibration, asked=Quantization(), target=PER_CHANNEL):  # noqa: B008
    return recipe(graph, observe(graph, SAMPLES), SAMPLES, calibration, target, quantization=asked)


def evened(graph, target=PER_CHANNEL):
    return recipe_of(graph, Calibration("max"), Quantization(even_depthwise=True), target)


def outputs(graph, feeds=FEEDS):
    session = float_session(graph)
    return np.stack([session.run(None, feed)[0] for feed in feeds])


@pytest.mark.parametrize("between", ACTIVATIONS.values(), ids=[*ACTIVATIONS])
def test_the_function_stays_and_no_weight_is_rounded_more_coarsely(between):
    graph = network(between)
    made = rescaled(graph, evened(graph).factors)
    assert cosine(outputs(graph), outputs(made)) > 1 - 1e-9
    layers = [[n for n in g.nodes() if n.op_type == "Conv"][:2] for g in (graph, made)]
    for pair in zip(*layers, strict=True):
        before, after = (array(node.inputs[1]) for node in pair)
        whole = [np.abs(w).max(axis=(1, 2, 3), keepdims=True) for w in (before, after)]
        assert np.allclose(before / whole[0], after / whole[1], atol=1e-6)
        assert not np.allclose(before, after)


@pytest.mark.parametrize("between", ACTIVATIONS.values(), ids=[*ACTIVATIONS])
def test_each_channel_gets_codes_and_the_small_ones_keep_room(between):
    """A grid of its own for every channel would clip each where the samples end."""
    graph = network(between)
    (s,) = (np.array(factors) for factors in evened(graph).factors.values())
    channels = observe(graph, SAMPLES).channels
    low, high = next(channels[name] for name in "mra" if name in channels)
    peaks = np.maximum(-low, high)
    room = (peaks / s).max() / (peaks / s)
    before = peaks.max() / peaks
    small = before > 1.5
    assert (room[small] < before[small] ** 0.5).all()
    assert (room[small] > before[small] ** 0.1).all()


def test_a_channel_that_is_silent_over_the_samples_is_not_blown_up():
    sizes = np.where(np.arange(CHANNELS) == 3, 1e-12, SIZES)
    (s,) = (np.array(factors) for factors in evened(network(sizes=sizes)).factors.values())
    assert s.max() / s[3] < 32


@pytest.mark.parametrize(
    ("graph", "target"),
    [
        (network(reader=DENSE), PER_CHANNEL),  # its weights would lose
        (network(), PER_TENSOR),
        (network("s = Sigmoid(a)  m = Mul(a, s)"), PER_CHANNEL),  # needs one more layer
    ],
    ids=["dense", "per tensor", "gated"],
)
def test_what_would_cost_weights_or_layers_stays(graph, target):
    assert not evened(graph, target).factors


@pytest.mark.slow
@pytest.mark.parametrize(("between", "target"), few(SPACE, SAMPLED.__contains__))
def test_best_keeps_it_and_loses_less_on_other_samples(between, target):
    graph, chip, wanted = network(between), read_target(target), outputs(network(between))[16:]
    best = Calibration(recipe="best")
    lost = {}
    for is_open in (None, False):
        asked = Quantization(even_depthwise=is_open, migrate=False, equalize=False, most_int16=0)
        made = recipe_of(graph, best, asked, chip)
        assert (EVEN in made.switches) is (is_open is None)
        assert any(EVEN in trial.what for trial in made.trials) is (is_open is None)
        file = quantized(calibrated(graph, made, SAMPLES, chip, quantization=asked), chip)
        lost[is_open] = 1 - cosine(outputs(file, FEEDS[16:]), wanted)
    assert lost[None] < lost[False]


@pytest.mark.slow
def test_a_model_without_depthwise_layers_has_no_trial_of_it():
    made = recipe_of(network(reader=DENSE), Calibration(recipe="best"))
    assert not any(EVEN in trial.what for trial in made.trials)


@pytest.mark.slow
def test_default_tries_it_too():
    made = recipe_of(network(), Calibration("default"))
    assert EVEN in made.switches
    assert {EVEN in trial.what for trial in made.trials} == {True, False}


def test_relu6_passes_factors_below_its_bound():
    graph = network(CLIP)
    (s,) = (np.array(factors) for factors in evened(graph).factors.values())
    _, peaks = observe(graph, SAMPLES).channels["m"]
    assert peaks.max() == LIMIT
    assert s.max() == 1.0
    assert s.min() < 0.5
    assert (peaks / s).max() <= LIMIT * (1 + 1e-6)
    before, after = (
        outputs(g, [*SAMPLES]) for g in (graph, rescaled(graph, evened(graph).factors))
    )
    assert cosine(before, after) > 1 - 1e-9


@pytest.mark.parametrize(
    ("between", "switch"),
    [
        ("p = MaxPool<kernel_shape=[2,2]>(a)  m = Clip(p, zero, limit)", EVEN),  # p exceeds it
        ("n = Neg(zero)  m = Clip(a, n, limit)", EVEN),  # not known to be 0
        (CLIP, MIGRATE),
        (CLIP, "equalize"),
    ],
)
def test_where_a_bound_would_cut_the_samples_off_nothing_moves(between, switch):
    graph = network(between)
    asked = Quantization(**{switch: True})
    factors = recipe_of(graph, Calibration("max"), asked).factors
    assert not {"a", "p"} & factors.keys()


@pytest.mark.parametrize("switches", [*itertools.combinations((EVEN, MIGRATE, "equalize"), 2)])
def test_it_goes_with_the_other_rescalings(switches):
    graph = network()
    made = recipe_of(graph, Calibration("max"), Quantization(**dict.fromkeys(switches, True)))
    assert made.factors
    assert cosine(outputs(graph), outputs(rescaled(graph, made.factors))) > 1 - 1e-9


@pytest.mark.parametrize(
    ("losses", "is_kept"),
    [
        ((0.1, 0.1, 0.1, 0.1), True),
        ((0.09, 0.09, 0.09, 0.09), True),
        ((0.102, 0.102, 0.102, 0.102), False),  # a little, but in every sample
        ((0.05, 0.15, 0.05, 0.16), True),  # less than its error
        ((0.1, 0.1, 0.1, 0.12), True),  # about as much as its error
        ((0.11, 0.11, 0.11, 0.12), False),  # more than twice its error
        ((0.2, 0.2, 0.2, 0.2), False),
    ],
)
def test_it_is_kept_unless_it_loses_more_than_two_errors(losses, is_kept):
    plain = score_of_losses(0.1, 0.1, 0.1, 0.1)
    assert score_of_losses(*losses).is_as_close(plain, MAX_ERRORS) is is_kept
