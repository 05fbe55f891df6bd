"""Causes that move, repeat or narrow values are told by their figures, twice and at a real size."""

from __future__ import annotations

import numpy as np
import pytest

from debug.test_dump_causes import IMAGES, evidence, first, fitted, tensor

SQUARES = [(shape, grid) for shape, grid in IMAGES if shape[2] == shape[3]]


def image(case, seed: int = 0) -> np.ndarray:
    return tensor(case[0], *case[1], seed)


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize(
    ("axes", "words"),
    [(3, "mirrored left"), (2, "mirrored top"), ((2, 3), "rotated by 180")],
)
def test_a_picture_is_mirrored(case, axes, words):
    computed = image(case)
    cause = first(evidence(computed, np.flip(computed, axes), case))
    assert cause.kind == "orientation"
    assert words in cause.sentence


@pytest.mark.parametrize("case", SQUARES)
@pytest.mark.parametrize(("quarters", "words"), [(1, "to the left"), (3, "to the right")])
def test_a_picture_is_rotated(case, quarters, words):
    computed = image(case)
    cause = first(evidence(computed, np.rot90(computed, quarters, (2, 3)), case))
    assert cause.kind == "orientation"
    assert words in cause.sentence


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("move", [(3, 0), (-2, 3), (0, -3), (1, 1)])
@pytest.mark.parametrize("comes_in_again", [True, False])
def test_a_picture_is_shifted(case, move, comes_in_again):
    computed = image(case)
    dumped = np.roll(computed, move, (2, 3))
    if not comes_in_again:
        rows, columns = (
            (np.arange(n) - d < 0) | (np.arange(n) - d >= n)
            for n, d in zip(computed.shape[2:], move, strict=True)
        )
        dumped[:, :, rows] = case[1][1]
        dumped[:, :, :, columns] = case[1][1]
    cause = first(evidence(computed, dumped, case))
    assert cause.kind in ("shift", "padding")
    assert (cause.figures["rows"], cause.figures["columns"]) == move


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_picture_is_zoomed(case, factor):
    computed = image(case)
    places = [np.floor(np.arange(n) / factor).astype(int) for n in computed.shape[2:]]
    inside = [p[p < n] for p, n in zip(places, computed.shape[2:], strict=True)]
    dumped = np.full_like(computed, case[1][1])
    zoomed = computed[:, :, inside[0]][:, :, :, inside[1]]
    dumped[:, :, : zoomed.shape[2], : zoomed.shape[3]] = zoomed
    cause = first(evidence(computed, dumped, case))
    assert cause.kind == "zoom"
    assert cause.figures["factor"] == pytest.approx(factor)


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("by", [5, 37])
def test_a_buffer_is_read_from_another_address(case, by):
    computed = image(case)
    dumped = np.roll(computed.ravel(), by).reshape(computed.shape)
    cause = first(evidence(computed, dumped, case))
    assert (cause.kind, cause.figures["by"]) == ("offset", by)


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("value", [0, 85])
def test_a_part_is_not_written(case, axis, value):
    computed = image(case)
    dumped = computed.copy()
    np.moveaxis(dumped, axis, 0)[2:5] = value
    cause = first(evidence(computed, dumped, case))
    assert cause.kind == "uninitialized"
    assert f"{('channels', 'rows', 'columns')[axis - 1]} 2 to 4" in cause.sentence


@pytest.mark.parametrize("case", IMAGES)
def test_a_part_is_written_twice(case):
    computed = image(case)
    dumped = computed.copy()
    dumped[:, :, 4:8] = computed[:, :, :4]
    cause = first(evidence(computed, dumped, case))
    assert (cause.kind, cause.figures["from"]) == ("partial", 0)


@pytest.mark.parametrize("case", IMAGES)
def test_a_part_of_another_sample(case):
    computed, other = image(case), image(case, 3)
    dumped = computed.copy()
    dumped[:, :, 5:] = other[:, :, 5:]
    cause = first(evidence(computed, dumped, case, samples=lambda: [("sample 4", other)]))
    assert (cause.kind, cause.figures["source"]) == ("stale", "sample 4")


@pytest.mark.parametrize("case", IMAGES)
def test_a_tensor_of_another_sample(case):
    computed, other = image(case), image(case, 3)
    cause = first(evidence(computed, other, case, samples=lambda: [("sample 4", other)]))
    assert (cause.kind, cause.figures["sample"]) == ("other_sample", "sample 4")


@pytest.mark.parametrize("case", [case for case in IMAGES if case[1][0] == "int16"])
@pytest.mark.parametrize(("factor", "zero"), [(1 / 256, 0), (1 / 128, -128), (0.0061, 17)])
def test_a_board_of_8_bits_under_a_plan_of_16(case, factor, zero):
    computed = image(case)
    noise = np.random.default_rng(4).integers(-1, 2, computed.shape)
    dumped = fitted(computed * factor + zero + noise, "int8")
    raw = dumped.astype(np.int8)
    other = dumped + np.random.default_rng(5).integers(0, 2, computed.shape)
    seen = evidence(computed, dumped, case, raw=raw, buffers=lambda: [("other", other)])
    cause = first(seen)
    assert (cause.kind, cause.figures["bits"]) == ("width", 8)


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("step", [-1, 1])
def test_a_zero_point_by_one_behind_a_relu_is_no_rounding(case, step):
    shape, (dtype, zero) = case
    computed = np.maximum(image(case), max(zero, -120))
    still = (computed == computed.min()) & (np.random.default_rng(6).random(shape) < 0.5)
    dumped = np.where(still, computed, fitted(computed + step, dtype))
    cause = first(evidence(computed, dumped, case))
    assert (cause.kind, cause.figures["shift"]) == ("zero_point", step)


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("bit", [3, 5])
@pytest.mark.parametrize("state", ["0", "1", "turned"])
def test_a_bit_is_stuck(case, bit, state):
    computed, mask = image(case).astype(case[1][0]), np.array(1 << bit, case[1][0])
    dumped = {"0": computed & ~mask, "1": computed | mask, "turned": computed ^ mask}[state]
    cause = first(evidence(computed.astype(float), dumped.astype(float), case))
    assert (cause.kind, cause.figures["bit"]) == ("bits", bit)
    assert cause.figures["state"] == state


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("count", [2, 4, 8])
def test_elements_are_reversed_in_words(case, count):
    computed = image(case)
    dumped = computed.reshape(-1, count)[:, ::-1].reshape(computed.shape)
    cause = first(evidence(computed, dumped, case))
    assert cause.kind in ("byte_order", "orientation")  # rows of eight are mirrored so
    if cause.kind == "byte_order":
        assert cause.figures["elements"] == count


@pytest.mark.parametrize("case", [case for case in IMAGES if case[1][1] == 0])
def test_values_that_wrap_around(case):
    computed = image(case)
    dumped = (computed.astype(np.int64) * 4).astype(case[1][0]).astype(float)
    cause = first(evidence(computed, dumped, case))
    assert (cause.kind, cause.figures["factor"]) == ("overflow", 4.0)
