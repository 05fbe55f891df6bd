"""Min/max observer: extremes of every channel and tensor, whichever thread sees which sample."""

import math

import numpy as np
import pytest

from npumake.quant.calibration.buffer_layout import BufferLayout, ObservedTensor
from npumake.quant.calibration.minmax_observer import MinMaxObserver, NotFiniteError

FLOOR = 0.5
SHAPES = [(1, 8, 40, 30), (2, 5, 3, 3), (1, 3, 60, 50), (1, 24, 11, 11), (77,), (1, 10), ()]
TENSORS = [
    ObservedTensor(f"{shape} from {floor}", "", shape, floor)
    for shape in SHAPES
    for floor in (-math.inf, FLOOR)
]
LAYOUT = BufferLayout(TENSORS)


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, LAYOUT.starts[-1])).astype(np.float32)


def arrays(samples):
    """By tensor, the values of all samples."""
    for tensor, start in zip(TENSORS, LAYOUT.starts, strict=False):
        part = samples[:, start : start + tensor.elements]
        yield tensor, part.reshape(len(samples), *tensor.shape)


def low_of(values, tensor, axes):
    least = values.min(axis=axes)
    return least if tensor.floor < 0 else np.full_like(least, tensor.floor)


def of_two_threads(samples):
    """The scratch buffer is overwritten: nothing is read twice."""
    threads = MinMaxObserver(LAYOUT), MinMaxObserver(LAYOUT)
    for number, sample in enumerate(samples):
        buffer = sample.copy()
        threads[number % 2].add(number, buffer)
        buffer[:] = np.nan
    threads[1].merge(threads[0])
    return threads[1]


def test_the_views_of_a_buffer_are_its_tensors_in_order():
    layout = BufferLayout([t._replace(output=t.name) for t in TENSORS])
    views = layout.views(np.arange(layout.starts[-1], dtype="f"))
    assert [view.shape for view in views.values()] == [tensor.shape for tensor in TENSORS]
    assert np.array_equal(
        np.concatenate([view.ravel() for view in views.values()]), np.arange(layout.starts[-1])
    )


def test_the_extremes_of_a_tensor_by_sample_and_over_all(samples):
    observer = of_two_threads(samples)
    by_sample, by_tensor = observer.by_sample(), observer.by_tensor()
    for row, (tensor, values) in enumerate(arrays(samples)):
        flat = values.reshape(len(samples), -1)
        assert np.array_equal(by_sample.low[:, row], low_of(flat, tensor, 1))
        assert np.array_equal(by_sample.high[:, row], flat.max(axis=1))
        assert by_tensor.low[row] == low_of(flat, tensor, None)
        assert by_tensor.high[row] == flat.max()


def test_the_extremes_of_channels_are_those_of_all_samples_and_images(samples):
    channels = of_two_threads(samples).by_channel()
    assert {*channels} == {tensor.name for tensor in TENSORS if len(tensor.shape) == 4}
    for tensor, values in arrays(samples):
        if tensor.name in channels:
            extremes = channels[tensor.name]
            assert np.array_equal(extremes.low, low_of(values, tensor, (0, 1, 3, 4)))
            assert np.array_equal(extremes.high, values.max(axis=(0, 1, 3, 4)))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("index", range(len(TENSORS)))
def test_a_value_that_is_not_finite_is_refused_by_its_tensor(samples, index, number):
    samples[0, LAYOUT.starts[index] + TENSORS[index].elements // 2] = number
    with pytest.raises(NotFiniteError) as caught:
        MinMaxObserver(LAYOUT).add(0, samples[0])
    assert caught.value.where == TENSORS[index].name


def test_negative_zero_is_zero():
    layout = BufferLayout([ObservedTensor("x", "x", (1, 1, 1, 2), -math.inf)])
    observer = MinMaxObserver(layout)
    observer.add(0, np.array([-0.0, -0.0], np.float32))
    extremes = (observer.by_sample(), observer.by_tensor(), observer.by_channel()["x"])
    assert not any(np.signbit(side).any() for each in extremes for side in each)
