"""The choice of what to promote: measured, as good as wished, as cheap as can be."""

from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.errors import ProjectError
from npumake.frontends import read_model
from npumake.graph import shape, upgraded
from npumake.passes import optimized
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.precision.precision_candidates import all_but, candidates, operations, promoted
from npumake.quant.qdq.integers import with_integer_weights
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.quant.search.objective import Objective, choose_promotions
from npumake.quant.search.type_judge import judge, score_outputs
from npumake.targets.reader import read_target
from quant.test_types import NPU, X3, X5, feeds, graph, of
from workspaces import shared_data

NOTHING = Quantization()


class Model:
    """A float graph for a chip, its scores by the names promoted, and how many were measured."""

    def __init__(self, graph, feeds, target, to="int16"):
        self.graph, self.target, self.to, self.measured = graph, target, to, 0
        statistics = observe(graph, feeds)
        symmetric = target.activations.symmetric
        self.recipe = ranges_by_method(graph, statistics, Calibration("max"), symmetric)
        samples = Samples(tuple(map(str, range(len(feeds)))), feeds.__getitem__)
        self.judge = judge(graph, self.recipe, samples, target)
        self.score = cache(lambda names: self.scored(self.asked(names)))
        self.candidates = candidates(graph, target, NOTHING, to)

    def asked(self, names):
        return promoted(self.graph, self.target, NOTHING, names, self.to)

    def scores_without(self, names):
        for types in all_but(self.graph, self.target, NOTHING, names, self.to):
            yield self.scored(types)

    def scored(self, asked):
        self.measured += 1
        return self.judge(asked)

    def reaching(self, wanted, **limits):
        return choose_promotions(self, Objective(wanted, **limits))


def against_trying_everything(chip, to):
    """(nodes chosen, fewest nodes of all sets that suffice) for five wishes."""
    model = Model(graph(), feeds(8), chip, to)
    sets = [frozenset(s) for n in range(7) for s in combinations(model.candidates, n)]
    cosines = {names: model.score(names).cosine for names in sets}
    for wanted in np.linspace(cosines[frozenset()], cosines[frozenset(model.candidates)], 5):
        found = model.reaching(float(wanted))
        assert found.suffices
        enough = [len(names) for names, cosine in cosines.items() if cosine >= wanted]
        yield len(found.chosen.names), min(enough)


@pytest.mark.slow
@pytest.mark.parametrize("chip", [NPU, X5], ids=["asymmetric", "symmetric"])
def test_a_small_model_gets_as_few_as_trying_everything_finds(chip):
    assert all(chosen == fewest for chosen, fewest in against_trying_everything(chip, "int16"))


@pytest.mark.slow
@pytest.mark.parametrize("chip", [NPU, X5], ids=["asymmetric", "symmetric"])
def test_on_the_cpu_it_gets_at_most_one_more(chip):
    assert all(chosen <= fewest + 1 for chosen, fewest in against_trying_everything(chip, "cpu"))


def test_more_than_everything_gives_is_not_found_and_the_best_is_told():
    model = Model(graph(), feeds(8), NPU)
    found = model.reaching(1.0)
    assert not found.suffices
    assert found.chosen == found.front[-1]


@pytest.mark.parametrize("share", [1.0, 0.5], ids=["out of reach", "within"])
def test_a_limit_of_nodes_and_one_of_operations_hold(share):
    model = Model(graph(), feeds(8), NPU)
    plain = model.score(frozenset()).cosine
    wanted = plain + share * (1.0 - plain)
    assert len(model.reaching(wanted, most_nodes=2).chosen.names) <= 2
    assert model.reaching(wanted, most_operations=0.3).chosen.operations <= 0.3
    assert model.reaching(wanted, most_nodes=0).chosen.names == ()


def test_the_front_gets_better_as_it_gets_dearer():
    front = Model(graph(), feeds(8), NPU).reaching(0.99999).front
    assert [len(choice.names) for choice in front] == sorted({len(c.names) for c in front})
    cosines = [choice.score.cosine for choice in front]
    assert cosines == sorted(set(cosines))


def test_where_int16_does_not_spread_the_neighbors_are_asked_for_it():
    model = graph()
    asked = promoted(model, NPU, NOTHING, ["m"], "int16")
    assert asked.types == {"m": "int16"}
    assert {name: (of.inputs, of.output) for name, of in asked.layers.items()} == {
        "c": ((), "int16"),
        "s": ((), "int16"),
        "d": (("int16",), None),
    }
    made = with_integer_weights(
        calibrated_with(model, Model(model, feeds(), NPU).recipe, NPU, asked)
    )
    assert of(made, "c s m d p") == "int16 int16 int16 int8 int8"


def test_where_it_spreads_only_the_node_is_written_down():
    assert promoted(graph(), X5, NOTHING, ["m"], "int16") == Quantization({"m": "int16"})


def test_what_the_project_says_stands():
    said = Quantization({"*": "int8"}, cpu=("p",))
    assert promoted(graph(), X5, said, ["m"], "int16").types == ({"*": "int8"}, {"m": "int16"})
    assert promoted(graph(), X5, said, ["c"], "cpu").cpu == ("p", "c")
    assert promoted(graph(), X5, said, [], "int16") == said


def test_candidates_have_8_bits_and_may_have_more():
    assert list(candidates(graph(), NPU, NOTHING, "int16")) == list("csmdpy")
    assert list(candidates(graph(), NPU, Quantization({"d": "int16"}), "int16")) == list("csmpy")
    assert list(candidates(graph(), X5, NOTHING, "int16")) == ["c", "s", "m", "d"]
    assert list(candidates(graph(), read_target("sl1680"), NOTHING, "float16")) == list("csmdpy")


@pytest.mark.parametrize(("chip", "to"), [(X3, "int16"), (X5, "float16")], ids=["x3", "x5"])
def test_a_chip_without_the_type_says_so(chip, to):
    with pytest.raises(ProjectError) as caught:
        candidates(graph(), chip, NOTHING, to)
    assert caught.value.what == f"{chip.name} has no 8-bit node to promote to {to}"
    assert caught.value.hint == "--to cpu"


@pytest.mark.parametrize(
    ("node", "count"),
    [
        ("t = Conv(x, w)", 1 * 2 * 16 * 2),  # channels made x places x channels read
        ("t = ConvTranspose(x, w)", 2 * 16 * 2),
        ("t = MatMul(x, x)", 2 * 16 * 4),
        ("t = Sigmoid(x)", 2 * 16),
    ],
)
def test_operations(node, count):
    (first,) = graph(f"{node}  y = Relu(t)").nodes()[:1]
    assert operations(first) == count


def test_scores_are_of_the_worst_output():
    real = [[np.array([1.0, 2.0]), np.array([3.0, 0.0])], [np.array([2.0, 1.0]), np.array([1, 0])]]
    made = [[np.array([1.0, 2.0]), np.array([0.0, 3.0])], [np.array([2.0, 1.0]), np.array([1, 0])]]
    assert score_outputs(real, real).cosine == score_outputs(real, real).agreement == 1.0
    assert score_outputs(real, made).cosine == 0.1
    assert score_outputs(real, made).agreement == 0.5


MOBILENET = shared_data() / "models/classification/mobilenet_v1_0.25_224_float.tflite"


@pytest.mark.slow
@pytest.mark.skipif(not MOBILENET.exists(), reason="shared/data/models is not here")
def test_a_real_model_gets_fewer_than_by_promoting_from_its_front():
    file = Path(MOBILENET)
    real = optimized(upgraded(read_model(file.read_bytes(), file.name)).with_shapes())
    model = Model(real, _pictures(real, 32), NPU, "cpu")
    wanted = 0.99
    found = model.reaching(wanted)
    names = list(model.candidates)
    from_the_front = next(
        n for n in range(len(names)) if model.score(frozenset(names[:n])).cosine >= wanted
    )
    assert found.suffices
    assert len(found.chosen.names) < from_the_front


def _pictures(graph, count):
    """Photographs as the model was trained on them."""
    from PIL import Image

    (fed,) = graph.inputs
    files = sorted((shared_data() / "images/imagenet500").glob("*.jpg"))[:count]
    read = (Image.open(file).convert("RGB").resize((224, 224)) for file in files)
    arrays = [(np.asarray(image, np.float32) / 127.5 - 1)[None] for image in read]
    assert shape(fed) == arrays[0].shape
    return [{str(fed.name): array} for array in arrays]
