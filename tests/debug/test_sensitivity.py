"""Sensitivity: a probe says what the whole model run with one node quantized says."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import trained
from npumake.data.samples import Samples
from npumake.debug import get_sensitivity_of_nodes
from npumake.debug.calibration_nodes import by_owner, calibration_nodes, with_only, without
from npumake.debug.metrics import METRICS
from npumake.debug.sensitivity import ModelUnderTest, groups_of, ranked, sensitivities
from npumake.engine.float_session import float_session
from npumake.errors import CacheError, ProjectError
from npumake.frontends import read_model
from npumake.graph import Graph, array, shape, upgraded
from npumake.kernels.measure import Agreement, agreement
from npumake.passes import optimized
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.targets.reader import read_target
from workspaces import few, shared_data

NETWORKS = ("repvgg", "mobilenetv3", "transformer")
MODELS = [
    shared_data() / "models" / name
    for name in (
        "classification/mobilenet_v1_0.25_224_float.tflite",
        "classification/squeezenet1.1_winml_fp32_DERIVED.onnx",
        "classification/cifar10_resnet8_float.tflite",
        "classification/vww_96_float.tflite",
        "detection/ultraface_slim320.onnx",
    )
]
BRIEF = (MODELS[0], MODELS[2])


@cache
def calibrated(name: str) -> Graph:
    return trained.calibrated(trained.network(name), trained.PER_CHANNEL)


def patient(name: str, count: int = 4) -> ModelUnderTest:
    feeds = trained.samples()[:count]
    names = tuple(str(number) for number in range(count))
    return ModelUnderTest(calibrated(name), Samples(names, lambda index: feeds[index]))


def brute_force(
    examined: ModelUnderTest, groups: dict[str, tuple[str, ...]]
) -> dict[str, tuple[Agreement, ...]]:
    """The whole model again for every node."""
    real = without(examined.calibrated)
    whole = float_session(real, fusion="floats")
    meant = [whole.run(None, feed) for feed in examined.samples]
    found = {}
    for name, group in groups.items():
        places = [one for one in examined.nodes if one.name in group]
        session = float_session(with_only(real, places), fusion="floats")
        sums = [Agreement()] * len(real.outputs)
        for feed, answers in zip(examined.samples, meant, strict=True):
            made = session.run(None, feed)
            sums = [s + agreement(a, b) for s, a, b in zip(sums, answers, made, strict=True)]
        found[name] = tuple(sums)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("node_type", ["node", "weight", "activation"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_probe_says_what_the_whole_model_says(name, node_type):
    examined = patient(name)
    groups = groups_of(examined, node_type)
    found, wanted = sensitivities(examined, groups), brute_force(examined, groups)
    for node, sums in wanted.items():
        for one, other in zip(found[node], sums, strict=True):
            noise = 1e-9 * one.aa  # a part of a model rounds otherwise than the whole
            assert one.squared == pytest.approx(other.squared, rel=1e-3, abs=noise)


def trained_on_noise(file: Path) -> ModelUnderTest:
    """A real model on noise: in one sample the errors of two places may cancel out, and what is
    left hangs on a single code."""
    graph = optimized(upgraded(read_model(file.read_bytes(), file.name)).with_shapes())
    rng = np.random.default_rng(0)
    (given,) = graph.inputs
    noise = [rng.uniform(-1, 1, shape(given)).astype(np.float32) for _ in range(4)]
    feeds = [{str(given.name): one} for one in noise]
    recipe = ranges_by_method(graph, observe(graph, feeds), Calibration("max"), True)
    made = calibrated_with(graph, recipe, read_target("rdk-x5"), DEFAULT)
    return ModelUnderTest(made, Samples(("a", "b", "c", "d"), feeds.__getitem__))


@pytest.mark.slow
@pytest.mark.parametrize("file", few(MODELS, BRIEF.__contains__), ids=lambda file: file.stem)
def test_the_ranking_of_a_real_model_is_that_of_brute_force(file):
    if not file.exists():
        pytest.skip("shared/data/models is not here")
    examined = trained_on_noise(file)
    groups = groups_of(examined, "node")
    found, wanted = sensitivities(examined, groups), brute_force(examined, groups)
    for name, metric in METRICS.items():
        # Equal but for noise they may change places.
        noise = 1e-6 if name == "cosine-similarity" else 1e-3
        losses = [metric.loss(metric.figure(wanted[node])) for node in ranked(found, name)]
        assert all(a >= b or math.isclose(a, b, rel_tol=noise) for a, b in pairwise(losses)), name


@pytest.mark.parametrize("name", NETWORKS)
def test_with_all_its_calibration_nodes_a_float_graph_is_the_calibrated_one(name):
    graph = calibrated(name)
    again = with_only(without(graph), calibration_nodes(graph))
    feed = trained.samples()[0]
    (a,), (b,) = (float_session(each).run(None, feed) for each in (graph, again))
    assert np.array_equal(a, b)


def test_a_weight_alone_loses_what_rounding_it_loses():
    """onnxruntime would also round what a MatMul multiplies with it."""
    examined = patient("transformer", 2)
    one = next(one for one in examined.nodes if "MatMul" in one.tensor and one.kind == "weight")
    rounded = without(examined.calibrated)
    weight = rounded.values()[one.tensor]
    held = rounded.constant("held", one.on_grid(array(weight)))
    rounded.replace_uses(weight, held)
    sessions = [float_session(graph) for graph in (without(examined.calibrated), rounded)]
    sums = Agreement()
    for feed in examined.samples:
        (meant,), (made,) = (session.run(None, feed) for session in sessions)
        sums += agreement(meant, made)
    (found,) = sensitivities(examined, {one.name: (one.name,)})[one.name]
    assert found.squared == pytest.approx(sums.squared, rel=1e-3)


def test_every_weight_and_every_tensor_belongs_to_a_node():
    examined = patient("mobilenetv3")
    assert {one.kind for one in examined.nodes} == {"weight", "activation"}
    owned = by_owner(examined.nodes)
    assert {name for names in owned.values() for name in names} == {n.name for n in examined.nodes}
    assert owned.keys() <= {str(node.name) for node in examined.calibrated.nodes()}


def test_the_dictionary_has_the_documented_shape():
    found = get_sensitivity_of_nodes(patient("repvgg"), ["mse", "cosine-similarity"])
    assert all(list(figures) == ["mse", "cosine-similarity"] for figures in found.values())
    assert all(isinstance(text, str) for figures in found.values() for text in figures.values())
    figures = [float(figures["mse"]) for figures in found.values()]
    assert figures == sorted(figures, reverse=True)


def test_what_was_answered_is_not_worked_out_again():
    examined = patient("repvgg")
    first = get_sensitivity_of_nodes(examined)
    forgotten = list(examined.cache)[1]
    del examined.cache[forgotten]
    asked = []

    class Listening(dict):
        def __setitem__(self, question, sums):
            asked.append(question)
            super().__setitem__(question, sums)

    again = ModelUnderTest(examined.calibrated, examined.samples, cache=Listening(examined.cache))
    assert get_sensitivity_of_nodes(again) == first
    assert asked == [forgotten]


def test_an_answer_that_cannot_be_kept_is_an_error():
    class Full(dict):
        def __setitem__(self, question, sums):
            raise CacheError("no space left")

    one = patient("repvgg", 1)
    with pytest.raises(CacheError, match="no space left"):
        get_sensitivity_of_nodes(ModelUnderTest(one.calibrated, one.samples, cache=Full()))


def test_how_many_probes_run_at_a_time_changes_nothing():
    one, four = (
        get_sensitivity_of_nodes(ModelUnderTest(each.calibrated, each.samples, at_once=count))
        for each, count in ((patient("repvgg"), 1), (patient("repvgg"), 4))
    )
    assert one == four


@pytest.mark.parametrize("samples", [5, 16, 40])
def test_no_bit_of_a_sum_depends_on_how_many_run_at_a_time(samples):
    examined = patient("repvgg", samples)
    groups = groups_of(examined, "node")
    one, *others = (
        sensitivities(ModelUnderTest(examined.calibrated, examined.samples, at_once=count), groups)
        for count in (1, 2, 3, 8)
    )
    assert all(other == one for other in others)


def test_many_samples_say_what_each_says():
    examined = patient("repvgg", 63)  # more than there are shares, and no multiple of them
    groups = groups_of(examined, "node")
    found, wanted = sensitivities(examined, groups), brute_force(examined, groups)
    for node, (sums,) in wanted.items():
        assert found[node][0].count == sums.count
        assert found[node][0].squared == pytest.approx(sums.squared, rel=1e-3, abs=1e-9 * sums.aa)
    many = ModelUnderTest(examined.calibrated, examined.samples, at_once=3)
    assert sensitivities(many, groups) == found


def test_up_to_a_node_only_what_lies_before_it_counts():
    examined = patient("repvgg")
    order = list(groups_of(examined, "node"))
    middle = order[len(order) // 2]
    found = get_sensitivity_of_nodes(examined, "mse", output_node=middle)
    behind = [name for name in order[order.index(middle) + 1 :]]
    assert all(found[name]["mse"] == "0.0" for name in behind)
    assert float(found[middle]["mse"]) > 0


def test_nodes_of_interest_go_by_any_name_of_theirs():
    examined = patient("mobilenetv3")
    activation = next(one for one in examined.nodes if one.kind == "activation")
    names = [activation.name, f"{activation.tensor}_HzCalibration"]
    found = get_sensitivity_of_nodes(examined, "mse", None, interested_nodes=names)
    assert found.keys() == set(names)
    assert found[names[0]] == found[names[1]]


@pytest.mark.parametrize(
    ("said", "what", "hint"),
    [
        ({"metrics": "cosine"}, "unknown metric `cosine`", "known: chebyshev, cosine-similarity"),
        ({"data_num": 5}, "data_num is 5, but there are 4 samples", ""),
        ({"data_num": 0}, "data_num is 0, but there are 4 samples", ""),
        ({"interested_nodes": "zzz"}, "nothing is quantized at `zzz`", "known: "),
        ({"output_node": "zzz"}, "no node `zzz` with a quantized output", "known: "),
    ],
)
def test_what_fits_nothing_is_refused(said, what, hint):
    with pytest.raises(ProjectError) as caught:
        get_sensitivity_of_nodes(patient("repvgg"), **said)
    assert caught.value.what == what
    assert caught.value.hint.startswith(hint)
