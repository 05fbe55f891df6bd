"""Reach: extremes of every channel and every tensor, whichever thread has seen which sample."""

import numpy as np
import pytest

from pipeline.quant.calibration.layout import CACHED, Layout
from pipeline.quant.calibration.reach import Reach
from pipeline.quant.calibration.views import View

SHAPES = [
    (1, 8, 40, 30),  # large channels
    (2, 5, 3, 3),  # small ones, of two images
    (1, 3, 600, 500),  # channels of more than a block
    (1, 40, 96, 96),  # in more than one block together
    (CACHED + 1,),  # no channels
    (1, 2400, 11, 11),  # small channels in more than one block
    (1, 10),
    (),
    (2, 32, 40, 30),  # channels side by side, of two images
    (1, 16, 40, 30),
    (1, 8, 3, 5),  # small ones
    (1, 16, 300, 200),  # of more than a block together
]
BLOCKS = [1] * 8 + [8] * 4  # how many channels lie side by side
LAYOUT = Layout(
    {
        str(row): View(shape, (shape,), block)
        for row, (shape, block) in enumerate(zip(SHAPES, BLOCKS, strict=True))
    }
)


@pytest.fixture(scope="module")
def buffers():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, LAYOUT.elements)).astype(np.float32)


def tensors(buffer):
    parts = np.split(buffer, LAYOUT.starts[1:-1])
    return [apart(*each) for each in zip(parts, SHAPES, BLOCKS, strict=True)]


def apart(part, shape, block):
    """Laid out as its shape says."""
    if block == 1:
        return part.reshape(shape)
    images, channels, rows, columns = shape
    blocks = part.reshape(images, channels // block, rows, columns, block)
    return np.moveaxis(blocks, -1, 2).reshape(shape)


def test_every_element_is_in_one_block_and_every_part_begins_in_one():
    ends = [0, *(block.span.stop for block in LAYOUT.blocks)]
    assert [block.span.start for block in LAYOUT.blocks] == ends[:-1]
    assert ends[-1] == LAYOUT.elements
    kept = [one for block in LAYOUT.blocks for one in block.kept]
    assert sum(one.groups * one.block for one in kept) == LAYOUT.tensor_parts[-1]
    assert sum(one.size * one.depth for one in kept) == LAYOUT.elements
    assert {block.kind for block in LAYOUT.blocks} == {"small", "large", "side by side"}


def test_a_buffer_begins_with_a_line_of_the_cache():
    buffer = LAYOUT.buffer()
    assert buffer.shape == (LAYOUT.elements,)
    assert buffer.ctypes.data % 64 == 0


def test_the_extremes_of_a_sample_are_those_of_its_tensors(buffers):
    for buffer in buffers:
        found = Reach(LAYOUT).add(buffer)
        assert found.low.tolist() == [t.min() for t in tensors(buffer)]
        assert found.high.tolist() == [t.max() for t in tensors(buffer)]


def test_the_extremes_of_parts_are_those_of_all_samples_however_they_are_shared_out(buffers):
    one, other = Reach(LAYOUT), Reach(LAYOUT)
    for reach, buffer in zip((one, other, one), buffers, strict=True):
        scratch = buffer.copy()
        reach.add(scratch)
        scratch[:] = np.nan  # what was seen is not looked up again
    found = one.of_parts() | other.of_parts()
    together = (np.stack(some, axis=-1) for some in zip(*map(tensors, buffers), strict=True))
    rows = [t.reshape(t.shape[0] * t.shape[1] if t.ndim == 5 else 1, -1) for t in together]
    assert found.low.tolist() == np.concatenate([r.min(axis=1) for r in rows]).tolist()
    assert found.high.tolist() == np.concatenate([r.max(axis=1) for r in rows]).tolist()


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", range(len(SHAPES)))
def test_what_is_no_number_shows_in_its_tensor_and_in_no_other(buffers, row, number):
    buffer = buffers[0].copy()
    buffer[(LAYOUT.starts[row] + LAYOUT.starts[row + 1]) // 2] = number
    found = Reach(LAYOUT).add(buffer)
    bad = ~np.isfinite(found.low) | ~np.isfinite(found.high)
    assert np.flatnonzero(bad).tolist() == [row]
