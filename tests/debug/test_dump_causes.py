"""Each cause of a divergence is told by its figures, whatever the tensor's shape, type and grid."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from npumake.bundle.program import Instruction, Tensor
from npumake.debug.dumps.causes import CAUSES, causes
from npumake.debug.dumps.evidence import Evidence, LikelyCause
from npumake.debug.dumps.reading import CODES, GRID, REAL, TO_CHANNELS_LAST, DumpReading

IMAGE, WIDE, VECTOR = (1, 16, 12, 14), (1, 24, 8, 8), (1, 64)
SHAPES = (IMAGE, WIDE, VECTOR)
GRIDS = (("int8", -128), ("int8", 5), ("int8", 0), ("int16", 0), ("uint8", 0), ("uint8", 117))
CASES = list(product(SHAPES, GRIDS))
IMAGES = [case for case in CASES if len(case[0]) == 4]


def tensor(shape: tuple[int, ...], dtype: str, zero: int, seed: int = 0) -> np.ndarray:
    """Codes as a layer makes them: each channel has its own mean and spread, and with the zero
    point at the lowest code the negative ones are cut off."""
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    reach = (limits.max - limits.min) / 10
    each = (1, shape[1], *(1 for _ in shape[2:]))
    values = rng.normal(rng.normal(0.3, 0.5, each), rng.uniform(0.3, 1.2, each), shape) * reach
    return np.clip(np.rint(values + zero), limits.min, limits.max)


def evidence(ours, theirs, case, form=CODES, order=None, raw=None, **known) -> Evidence:
    shape, (dtype, zero) = case
    order = order or tuple(range(len(shape)))
    reading = DumpReading(theirs.astype(np.float64), order, form, theirs if raw is None else raw)
    return Evidence(ours, reading, Tensor(shape, dtype, 0.05, zero), **known)


def first(seen: Evidence) -> LikelyCause:
    found = causes(seen)
    assert found, "no cause is told"
    return found[0]


def fitted(values: np.ndarray, dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("factor", [0.25, 0.5, 0.8, 1.3, 2.0, 4.0])
def test_a_factor_is_a_scale(case, factor):
    shape, (dtype, zero) = case
    ours = tensor(shape, dtype, zero)
    found = first(evidence(ours, fitted((ours - zero) * factor + zero, dtype), case))
    assert found.kind == "scale"
    assert found.figures["factor"] == pytest.approx(factor, rel=0.02)


@pytest.mark.parametrize("factor", [0.25, 0.5, 2.0])
def test_of_two_values_a_factor_is_no_clipping(factor):
    case = ((1, 2), ("int8", 0))
    ours = np.array([[-40.0, 52.0]])
    assert first(evidence(ours, ours * factor, case)).kind == "scale"


@pytest.mark.parametrize("case", CASES)
def test_the_scale_of_another_tensor_is_named(case):
    shape, (_dtype, zero) = case
    ours = tensor(shape, *case[1])
    real = (ours - zero) * (0.05 / 0.037) + zero
    found = first(evidence(ours, real, case, REAL, scales={"before": 0.037, "b": 0.2}))
    assert found.kind == "scale"
    assert "`before`" in found.sentence


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shift", [-31, -2, 1, 3, 17])
def test_a_shift_is_a_zero_point(case, shift):
    shape, (dtype, zero) = case
    ours = tensor(shape, dtype, zero)
    found = first(evidence(ours, fitted(ours + shift, dtype), case))
    assert found.kind == "zero_point"
    assert found.figures["shift"] == shift


@pytest.mark.parametrize("case", [case for case in CASES if case[1][0] != "uint8"])
def test_the_highest_bit_turned_is_a_zero_point(case):
    shape, (dtype, zero) = case
    ours = tensor(shape, dtype, zero)
    theirs = ours.astype(dtype) ^ np.array(np.iinfo(dtype).min, dtype)
    assert first(evidence(ours, theirs.astype(np.float64), case)).kind == "zero_point"


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2), (0, 3, 2, 1)])
def test_an_order_of_axes_is_a_layout(case, order):
    ours = tensor(case[0], *case[1])
    theirs = ours.transpose(order).reshape(ours.shape)
    assert first(evidence(ours, theirs, case)).kind == "layout"


@pytest.mark.parametrize("case", IMAGES)
def test_a_layout_is_named_in_a_file_that_is_channels_last(case):
    ours = tensor(case[0], *case[1])
    shape = tuple(case[0][axis] for axis in TO_CHANNELS_LAST[4])
    theirs = ours.reshape(shape).transpose(np.argsort(TO_CHANNELS_LAST[4]))
    found = first(evidence(ours, theirs, case, order=TO_CHANNELS_LAST[4]))
    assert (found.kind, found.figures["order"], found.figures["expected"]) == (
        "layout",
        "NCHW",
        "NHWC",
    )


@pytest.mark.parametrize("case", [case for case in IMAGES if case[0] == IMAGE])
def test_channels_in_blocks_are_a_layout(case):
    ours = tensor(case[0], *case[1])
    n, c, h, w = ours.shape
    theirs = ours.reshape(n, c // 8, 8, h, w).transpose(0, 1, 3, 4, 2).reshape(ours.shape)
    found = first(evidence(ours, theirs, case))
    assert (found.kind, found.figures["order"]) == ("layout", "NC8HW8")


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("how", ["reversed", "rotated", "permuted"])
def test_channels_in_another_order(case, how):
    ours = tensor(case[0], *case[1])
    count = ours.shape[1]
    orders = {
        "reversed": np.arange(count)[::-1],
        "rotated": np.roll(np.arange(count), 3),
        "permuted": np.random.default_rng(1).permutation(count),
    }
    found = first(evidence(ours, ours[:, orders[how]], case))
    assert found.kind == "channel_order"
    assert found.figures["order"] == orders[how].tolist()


@pytest.mark.parametrize("case", [case for case in CASES if case[1][0] == "int16"])
@pytest.mark.parametrize("how", ["high bits", "rounded", "127 steps", "high byte", "low byte"])
def test_half_of_the_bits_is_a_lost_width(case, how):
    ours = tensor(case[0], *case[1])
    whole = ours.astype(np.int64)
    theirs = {
        "high bits": whole >> 8 << 8,
        "rounded": np.rint(ours / 256) * 256,
        "127 steps": np.rint(np.rint(ours * 127 / 32767) * 32767 / 127),
        "high byte": whole >> 8,
        "low byte": whole & 255,
    }[how]
    assert first(evidence(ours, np.asarray(theirs, np.float64), case)).kind == "width"


@pytest.mark.parametrize("case", [case for case in CASES if case[1][0] != "int16"])
def test_four_bits_of_eight_are_a_lost_width(case):
    ours = tensor(case[0], *case[1])
    theirs = (ours.astype(np.int64) >> 4 << 4).astype(np.float64)
    found = first(evidence(ours, theirs, case))
    assert (found.kind, found.figures["bits"]) == ("width", 4)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("part", [0.3, 0.6])
def test_a_lower_maximum_is_clipped(case, part):
    ours = tensor(case[0], *case[1])
    zero = case[1][1]
    theirs = np.minimum(ours, np.rint(zero + part * (ours.max() - zero)))
    found = first(evidence(ours, theirs, case))
    assert (found.kind, found.figures["high"]) == ("clipped", theirs.max())


@pytest.mark.parametrize("case", CASES)
def test_a_missing_activation(case):
    shape, (dtype, zero) = case
    theirs = tensor(shape, dtype, zero)
    low, high = int(np.quantile(theirs, 0.3)) + 1, int(np.quantile(theirs, 0.9))
    step = Instruction("conv", "c", (), ("y",), attributes={"low": low, "high": high})
    seen = evidence(np.clip(theirs, low, high), theirs, case, step=step)
    assert first(seen).kind == "activation"


@pytest.mark.parametrize("case", IMAGES)
def test_an_offset_for_each_channel_is_a_bias(case):
    shape, (dtype, zero) = case
    ours = tensor(shape, dtype, zero)
    offsets = np.rint(np.random.default_rng(2).normal(0, 12, (1, shape[1], 1, 1)))
    assert first(evidence(ours, fitted(ours + offsets, dtype), case)).kind == "bias"


@pytest.mark.parametrize("case", IMAGES)
def test_a_factor_for_each_channel_is_a_scale(case):
    shape, (dtype, zero) = case
    ours = tensor(shape, dtype, zero)
    factors = np.random.default_rng(3).uniform(0.4, 1.0, (1, shape[1], 1, 1))
    found = first(evidence(ours, fitted((ours - zero) * factors + zero, dtype), case))
    assert found.kind == "scale"
    assert "per channel" in found.sentence


@pytest.mark.parametrize("case", IMAGES)
def test_a_few_channels_that_differ_are_weights(case):
    shape, (dtype, zero) = case
    ours, other = tensor(shape, dtype, zero), tensor(shape, dtype, zero, 9)
    theirs = ours.copy()
    theirs[:, [2, 5]] = other[:, [2, 5]]
    found = first(evidence(ours, theirs, case))
    assert (found.kind, found.figures["channels"]) == ("weights", [2, 5])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("value", [0.0, 7.0, np.nan])
def test_what_was_never_written(case, value):
    ours = tensor(case[0], *case[1])
    assert first(evidence(ours, np.full(case[0], value), case)).kind == "uninitialized"


@pytest.mark.parametrize("case", IMAGES)
def test_a_buffer_that_ends_early(case):
    ours = tensor(case[0], *case[1])
    theirs = ours.copy().ravel()
    theirs[theirs.size // 2 :] = 0.0
    seen = evidence(ours, theirs.reshape(ours.shape), case)
    assert first(seen).kind == "uninitialized"


@pytest.mark.parametrize("case", [case for case in CASES if case[1][0] == "int16"])
def test_bytes_turned_round(case):
    ours = tensor(case[0], *case[1])
    raw = ours.astype(np.int16).byteswap()
    found = first(evidence(ours, raw.astype(np.float64), case, raw=raw))
    assert found.kind == "byte_order"


@pytest.mark.parametrize("case", CASES)
def test_a_sign_that_was_lost(case):
    shape, (dtype, zero) = case
    ours = tensor(shape, dtype, zero)
    signed = np.dtype(dtype).kind == "i"
    ours = ours if signed else np.minimum(ours * 3, np.iinfo(dtype).max)
    other = f"u{dtype}" if signed else dtype.removeprefix("u")
    theirs = ours.astype(dtype).view(other).astype(np.float64)
    assert first(evidence(ours, theirs, case)).kind == "sign"


@pytest.mark.parametrize("case", IMAGES)
def test_padded_rows_read_as_if_they_were_not(case):
    ours = tensor(case[0], *case[1])
    row = ours.shape[-1]
    length = -(-row // 16) * 16 if row % 16 else row + 32
    if row == 8:
        length = 16
    rows = ours.reshape(-1, row)
    padded = np.zeros((len(rows), length))
    padded[:, :row] = rows
    theirs = padded.ravel()[: ours.size].reshape(ours.shape)
    found = first(evidence(ours, theirs, case))
    assert (found.kind, found.figures["stride"]) == ("padding", length)


@pytest.mark.parametrize("case", IMAGES)
def test_a_picture_a_pixel_away_is_padding(case):
    ours = tensor(case[0], *case[1])
    theirs = np.full_like(ours, case[1][1])
    theirs[:, :, 1:, 1:] = ours[:, :, :-1, :-1]
    assert first(evidence(ours, theirs, case)).kind == "padding"


@pytest.mark.parametrize("case", CASES)
def test_another_tensor_in_the_buffer(case):
    ours, other = tensor(case[0], *case[1]), tensor(case[0], *case[1], seed=4)
    found = first(evidence(ours, other, case, buffers=lambda: [("before", other)]))
    assert (found.kind, found.figures["tensor"]) == ("stale", "before")


@pytest.mark.parametrize("case", CASES)
def test_another_input(case):
    ours, other = tensor(case[0], *case[1]), tensor(case[0], *case[1], seed=5)
    fed = [("other_input:other input: the board was fed b", other)]
    assert first(evidence(ours, other, case, inputs=lambda: fed)).kind == "other_input"


@pytest.mark.parametrize("case", CASES)
def test_a_code_more_or_less_is_rounding(case):
    ours = tensor(case[0], *case[1])
    theirs = fitted(ours - (np.random.default_rng(6).random(case[0]) < 0.5), case[1][0])
    found = first(evidence(ours, theirs, case))
    assert found.kind == "rounding"
    assert "down" in found.sentence


@pytest.mark.parametrize("case", CASES)
def test_codes_that_are_ours_on_a_grid_that_is_described_otherwise(case):
    shape, (_dtype, zero) = case
    ours = tensor(shape, *case[1])
    real = (ours - zero) * 1.7 + zero
    assert first(evidence(ours, real, case, GRID, raw=ours)).kind == "scale"


@pytest.mark.parametrize("case", CASES)
def test_noise_has_no_cause(case):
    shape, (dtype, zero) = case
    found = causes(evidence(tensor(shape, dtype, zero), tensor(shape, dtype, zero, 7), case))
    assert [one for one in found if one.score > 0.8] == []


def test_a_cause_stands_in_the_table_once():
    assert len(set(CAUSES)) == len(CAUSES)
