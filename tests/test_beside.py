"""npumake beside other tools: paired intervals, shifts of scores, and the tables of the figures."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from npumake.evaluate import ImageDetections
from npumake.graph import parse_text
from npumake.targets.reader import read_target
from workspaces import REPO

sys.path.insert(0, str(REPO / "benchmarks"))

import paired
from beside import RESULTS, compared, in_8_bits
from beside_page import TARGETS, TASKS, Column, rows_of, sections, with_interval
from heads import HEADS as DETECTORS
from heads import SHOWN, Pixels, shifts, total
from peers import PEERS, left_in_float

# AdaRound takes long; Entropy finds the ranges of MinMax, which the page says once.
OPTIONAL = {"ara240": {"Quark, AdaRound"}, "rdk-x5": {"Quark, AdaRound", "onnxruntime Entropy"}}
FIGURES = {
    (target, name): figures
    for target, file in RESULTS.items()
    for name, figures in json.loads(file.read_text(encoding="utf-8")).items()
}


def detections(*rows: tuple[float, int, float]) -> ImageDetections:
    """Boxes of side 2 at x, of a class, with a score."""
    boxes = np.array([(x, 0, x + 2, 2) for x, _, _ in rows], np.float64).reshape(-1, 4)
    labels = np.array([label for _, label, _ in rows], int)
    return ImageDetections(boxes, np.array([score for *_, score in rows], float), labels)


def test_models_are_drawn_the_same_samples() -> None:
    scores = list(np.random.RandomState(1).uniform(0, 1, 50))
    totals = paired.resampled({"a": scores, "b": [score - 0.1 for score in scores]}, np.mean)
    assert paired.interval(totals["a"] - totals["b"]) == [0.1, 0.1, 0.1]
    figure, low, high = paired.interval(totals["a"])
    assert low < figure < high
    assert paired.standard_error(totals["a"] - totals["b"]) < 1e-9


def test_the_interval_of_a_mean_is_that_of_its_standard_error() -> None:
    scores = np.random.RandomState(2).normal(0, 1, 400)
    totals = paired.resampled({"a": list(scores)}, np.mean)["a"]
    assert paired.standard_error(totals) == pytest.approx(scores.std() / 20, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "ours", "theirs", "figure", "ahead"),
    [("kept", 0.4, 0.3, 60, 20), ("lost", 0.4, 0.3, 20, 10), ("points", 0.4, 0.3, 30, 10)],
)
def test_ahead_is_positive_where_ours_is_closer(
    kind: str, ours: float, theirs: float, figure: float, ahead: float
) -> None:
    column = Column("figure", kind)  # type: ignore[arg-type]
    a, b, floats = (np.full(3, value) for value in (ours, theirs, 0.5))
    assert column.figure(b, floats) == pytest.approx(figure)
    assert column.ahead(a, b, floats) == pytest.approx(ahead)
    assert column.ahead(b, a, floats) == pytest.approx(-ahead)


def test_a_score_shifts_by_the_box_of_its_class_that_overlaps_most() -> None:
    meant = detections((0, 0, 0.9), (10, 1, 0.6), (20, 0, SHOWN), (30, 0, SHOWN / 2))
    again = detections((0.2, 0, 0.7), (0.5, 0, 0.99), (10, 0, 0.6), (20, 0, 0.5))
    assert shifts(again, meant) == pytest.approx([-0.2, -0.6, 0.5 - SHOWN])
    assert shifts(meant, meant) == pytest.approx([0, 0, 0])
    assert shifts(detections(), meant) == pytest.approx([-0.9, -0.6, -SHOWN])
    assert shifts(meant, detections()).shape == (0,)


def test_pixels_have_the_mean_overlap_of_the_classes_that_the_float_model_sees() -> None:
    one = Pixels(np.array([2, 1, 0]), np.array([4, 2, 1]), np.array([3, 1, 0]))
    assert total(DETECTORS["deeplab"], [one, one]) == pytest.approx([0.5, 0.75])


def test_figures_are_compared_with_the_best_of_their_part() -> None:
    floats = np.full((5, 2), 0.5)
    totals = {"float": floats, "best": floats * 0.9, "other": floats * 0.8}
    row = compared("deeplab", totals, "other", "best")
    assert row["figures"] == [[80, 80, 80], [40, 40, 40]]
    assert row["ahead"][0] == [10, 10, 10]
    assert compared("deeplab", totals, "best", "best")["ahead"] == [None, None]


@pytest.mark.parametrize("name", TARGETS)
def test_what_leaves_the_npu_has_8_bits_on_request(name: str) -> None:
    target = read_target(name)
    narrow = in_8_bits(target)
    assert narrow.form is None or narrow.form.leaving == "int8"
    assert (narrow == target) is (target.form is None or target.form.leaving == "int8")


def test_each_target_has_its_part_and_adaround_its_time() -> None:
    row = {"tool": "Quark, AdaRound", "mixed": False, "float": "nothing", "minutes": 61.25}
    row |= {"figures": [[1, 1, 1]] * 2, "ahead": [None] * 2}
    figures = {"pictures": 1, "float": [0.5, 1.0], "versions": {"tool": "1"}, "rows": [row]}
    text = sections({target: {"mobilenet": figures} for target in TARGETS})
    assert text.count("\n### MobileNet") == len(TARGETS)
    assert text.count("| Quark, AdaRound, 61.2 CPU minutes |") == len(TARGETS)


def test_what_is_left_in_float_is_counted_behind_what_passes_codes_on() -> None:
    graph = parse_text("""agraph (float[1,2,4,4] x) => (float[1,2,4,4] y)
        <float s = {0.1}, uint8 z = {0}, float[2,4,1,1] w = {1, 2, 3, 4, 5, 6, 7, 8},
         float[2] g = {1, 2}> {
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        p = MaxPool<kernel_shape = [1, 1]>(d)
        c = Concat<axis = 1>(p, d)
        k = Conv(c, w)
        b = BatchNormalization(k, g, g, g, g)
        r = Relu(b)
        t = Sigmoid(r)
        y = Mul(t, r) }""")
    assert left_in_float(graph.to_bytes()) == {"Sigmoid": 1, "Mul": 1}


@pytest.mark.parametrize(("target", "name"), FIGURES)
def test_every_row_of_a_peer_has_its_interval_or_its_error(target: str, name: str) -> None:
    rows = {row["tool"]: row for row in FIGURES[target, name]["rows"]}
    optional = OPTIONAL[target]
    expected = {title for peer in PEERS.values() for title in peer.ways} - optional
    assert rows.keys() - optional == expected | {"best", "default", "best, mixed"}
    table = "\n".join(rows_of(name, FIGURES[target, name]))
    for title, row in rows.items():
        if "error" in row or title.startswith("best"):
            continue
        for column, ahead in zip(TASKS[name].columns, row["ahead"], strict=True):
            figure, low, high = ahead
            assert low <= figure <= high
            assert not column.is_compared or with_interval(ahead, column.digits) in table


@pytest.mark.parametrize(("target", "name"), FIGURES)
def test_8_bits_and_mixed_are_apart(target: str, name: str) -> None:
    for row in FIGURES[target, name]["rows"]:
        if "error" not in row:
            assert row["int16"] == 0 or row["mixed"]
            assert row["int16"] <= 0.1 or row["tool"] == "onnxruntime A16"
            assert row["mixed"] or not row["tool"].endswith(("A16", "mixed"))
