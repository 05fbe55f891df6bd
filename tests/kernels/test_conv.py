import numpy as np
import pytest

from npumake.kernels import conv as module
from npumake.kernels.conv import conv, conv_transpose

SAME_2D = ((1, 1, 1, 1), (1, 1), (1, 1))
CASES = {  # by spatial, kernel, pads, strides, dilations and the channels (C, O) with groups
    "1-D": ((9,), (3,), (2, 0), (2,), (1,), (3, 4, 1)),
    "3-D": ((4, 5, 6), (2, 3, 1), (1, 0, 0, 0, 2, 1), (1, 2, 1), (2, 1, 1), (2, 3, 1)),
    "pointwise": ((5, 4), (1, 1), (0, 0, 0, 0), (1, 1), (1, 1), (6, 4, 1)),
    "strided pointwise": ((5, 4), (1, 1), (0, 0, 0, 0), (2, 2), (1, 1), (6, 4, 1)),
    "asymmetric pads": ((7, 6), (3, 2), (0, 1, 2, 3), (1, 1), (1, 1), (2, 3, 1)),
    "dilated": ((9, 9), (3, 3), (2, 2, 2, 2), (1, 1), (2, 3), (2, 2, 1)),
    "groups": ((6, 5), (3, 3), (1, 1, 1, 1), (2, 1), (1, 1), (6, 4, 2)),
    "depthwise": ((7, 7), (3, 3), (1, 1, 1, 1), (2, 2), (1, 1), (5, 5, 5)),
    "depthwise, two each": ((7, 5), (3, 2), (0, 1, 1, 0), (1, 1), (2, 1), (3, 6, 3)),
    "one channel": ((6, 6), (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), (1, 4, 1)),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def integers(shape, seed=0, low=-255, high=256):
    return np.random.default_rng(seed).integers(low, high, shape)


@cases
def test_conv_is_the_convolution_of_onnx(case, reference):
    spatial, kernel, pads, strides, dilations, (channels, outputs, group) = case
    x = integers((2, channels, *spatial))
    weight = integers((outputs, channels // group, *kernel), 1, -128, 128)
    want = reference(
        "Conv",
        x.astype(np.float32),
        weight.astype(np.float32),
        pads=pads,
        strides=strides,
        dilations=dilations,
        group=group,
        kernel_shape=kernel,
    )
    got = conv(x, weight, pads, strides, dilations, group)
    assert got.dtype in (np.float32, np.float64)
    assert np.array_equal(got, want)


@cases
def test_conv_transpose_is_the_transposed_convolution_of_onnx(case, ort):
    spatial, kernel, pads, strides, dilations, (channels, outputs, group) = case
    if len(spatial) == 3:
        dilations = (1, 1, 1)
    extra = tuple(s - 1 for s in strides)
    x = integers((2, channels, *spatial))
    weight = integers((channels, outputs // group, *kernel), 1, -128, 128)
    want = ort(
        "ConvTranspose",
        x.astype(np.float32),
        weight.astype(np.float32),
        pads=pads,
        strides=strides,
        dilations=dilations,
        group=group,
        output_padding=extra,
    )
    rank = len(spatial)
    ends = (e - o for e, o in zip(pads[rank:], extra, strict=True))
    got = conv_transpose(x, weight, (*pads[:rank], *ends), strides, dilations, group)
    assert got.dtype in (np.float32, np.float64)
    assert np.array_equal(got, want)


@cases
def test_small_blocks_change_nothing(case, monkeypatch):
    spatial, kernel, pads, strides, dilations, (channels, outputs, group) = case
    x = integers((2, channels, *spatial))
    weight = integers((outputs, channels // group, *kernel), 1)
    back = integers((channels, outputs // group, *kernel), 1)
    geometry = (pads, strides, dilations, group)
    whole = conv(x, weight, *geometry), conv_transpose(x, back, *geometry)
    monkeypatch.setattr(module, "BLOCK_BYTES", 500)
    assert np.array_equal(conv(x, weight, *geometry), whole[0])
    assert np.array_equal(conv_transpose(x, back, *geometry), whole[1])


@pytest.mark.parametrize("largest", [2**3, 2**12, 2**20])
def test_a_conv_is_exact_whichever_float_carries_it(largest):
    x = integers((1, 8, 6, 6), 0, -largest, largest)
    weight = integers((4, 8, 3, 3), 1, -largest, largest)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = sum(
        np.einsum("oc,nchw->nohw", weight[:, :, i, j], padded[:, :, i : i + 6, j : j + 6])
        for i in range(3)
        for j in range(3)
    )
    assert np.array_equal(conv(x, weight, *SAME_2D, 1), want)


def test_extreme_int8_sums_do_not_wrap():
    x = np.full((1, 2000, 3, 3), -128, np.int8)
    weight = np.full((1, 2000, 3, 3), -128, np.int8)
    assert conv(x, weight, *SAME_2D, 1)[0, 0, 1, 1] == 128 * 128 * 2000 * 9


def test_a_sum_beyond_float64_is_refused():
    x = np.full((1, 1, 3, 3), 2**31)
    with pytest.raises(OverflowError, match="beyond"):
        conv(x, np.full((1, 1, 3, 3), 2**31), *SAME_2D, 1)


def test_a_kernel_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="does not fit"):
        conv(integers((1, 1, 2, 2)), integers((1, 1, 3, 3)), (0, 0, 0, 0), (1, 1), (1, 1), 1)
