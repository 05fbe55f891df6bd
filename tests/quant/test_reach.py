"""Reach: extremes of every channel and every tensor, whichever thread has seen which sample."""

from collections import Counter

import numpy as np
import pytest

from npumake.quant.calibration import buffer_layout as module
from npumake.quant.calibration.buffer_layout import Layout, room_for
from npumake.quant.calibration.minmax_observer import MinMaxObserver, by_channel
from npumake.quant.calibration.subsampling import SIDES, TensorSlice, TensorSlices

CACHED = 1 << 18  # elements of a block here, so that small tensors are in several

SHAPES = [
    (1, 8, 40, 30),  # large channels
    (1, 6, 32, 32),
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
BLOCKS = [1] * 9 + [8] * 4  # how many channels lie side by side
FLOOR = -9  # what no number fed here is below
LARGEST = (1, 8, 1, 1)  # of the first tensor, as onnxruntime pools it


def layout(clamped):
    """Of each shape a tensor that is told on both sides, and where some are clamped one of which
    only the largest values are; of the first of these in two pieces."""
    views = {}
    for row, (shape, block) in enumerate(zip(SHAPES, BLOCKS, strict=True)):
        views[str(row)] = TensorSlices(shape, (TensorSlice(shape, SIDES),), block)
        if clamped:
            shapes = [shape] if row else [shape, LARGEST]
            pieces = tuple(TensorSlice(one, ("high",)) for one in shapes)
            views[f"{row} clamped"] = TensorSlices(shape, pieces, block, FLOOR)
    return Layout(views)


LAYOUTS = [layout(False), layout(True)]
both = pytest.mark.parametrize("layout", LAYOUTS, ids=["both sides", "clamped"])


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_BLOCK_ELEMENTS", CACHED)
        yield


def filled(layout, count=3):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(count, layout.elements)).astype(np.float32)
    assert samples.min() > FLOOR
    return samples


def tensors(layout, buffer):
    """Each as its shape says, with what else was handed out of it; and which extremes are told."""
    for row, view in enumerate(layout.views.values()):
        whole, *more = (
            apart(buffer[start : start + piece.elements], piece.shape, view.block)
            for start, of, piece, _ in layout.positions
            if of == row
        )
        for largest in more:
            whole = np.concatenate([whole, widened(largest)], axis=-1)
        yield whole, view.pieces[0].tells


def widened(largest):
    """One row of the first tensor, which its largest values lie in."""
    return np.broadcast_to(largest, (1, 8, 40, 1))


def extremes(whole, tells, axis=None):
    least = whole.min(axis=axis)
    return (least if "low" in tells else np.full_like(least, FLOOR)), whole.max(axis=axis)


def apart(part, shape, block):
    """Laid out as its shape says."""
    if block == 1:
        return part.reshape(shape)
    images, channels, rows, columns = shape
    blocks = part.reshape(images, channels // block, rows, columns, block)
    return np.moveaxis(blocks, -1, 2).reshape(shape)


@both
def test_every_element_is_in_one_block(layout):
    read = np.zeros(layout.elements, int)
    for block in layout.blocks:
        read[block.span] += 1
        assert (
            sum(one.size * one.depth for one in block.sampled) == block.span.stop - block.span.start
        )
    assert (read == 1).all()
    assert {block.order.kind for block in layout.blocks} == {"small", "large", "side by side"}


@both
def test_tensors_of_every_kind_are_in_several_blocks_and_blocks_of_several_tensors(layout):
    kinds = {"small", "large", "side by side"}
    sizes = [(block.order.kind, block.span.stop - block.span.start) for block in layout.blocks]
    # Channels of more than a block are one.
    assert {kind for kind, size in sizes if size > CACHED} == {"large", "side by side"}
    met = Counter((block.order.kind, row) for block in layout.blocks for row in block.rows)
    assert {kind for (kind, _), blocks in met.items() if blocks > 1} == kinds
    assert {block.order.kind for block in layout.blocks if len(block.rows) > 1} == kinds


@both
def test_pieces_that_are_read_alike_lie_together(layout):
    ways = [block.order for block in layout.blocks]
    assert ways == sorted(ways)
    assert len(ways) <= len(set(ways)) + sum(p.elements for p in pieces(layout)) // (CACHED // 2)


def pieces(layout):
    return [placed.piece for placed in layout.positions]


@pytest.mark.parametrize("elements", [1, 17, 1 << 20])
def test_a_buffer_begins_with_a_line_of_the_cache(elements):
    buffer = room_for(elements)
    assert buffer.shape == (elements,)
    assert buffer.ctypes.data % 64 == 0


@both
def test_the_extremes_of_a_sample_are_those_of_its_tensors(layout):
    for buffer in filled(layout):
        found = MinMaxObserver(layout).add(buffer)
        low, high = zip(*(extremes(*each) for each in tensors(layout, buffer)), strict=True)
        assert found.low.tolist() == list(low)
        assert found.high.tolist() == list(high)


@both
def test_the_extremes_of_channels_are_those_of_all_samples_however_they_are_shared_out(layout):
    one, other = MinMaxObserver(layout), MinMaxObserver(layout)
    buffers = filled(layout)
    for reach, buffer in zip((one, other, one), buffers, strict=True):
        scratch = buffer.copy()
        reach.add(scratch)
        scratch[:] = np.nan  # what was seen is not looked up again
    found = by_channel(layout, one.of_parts() | other.of_parts())
    told = zip(*(tensors(layout, buffer) for buffer in buffers), strict=True)
    for name, samples in zip(layout.views, told, strict=True):
        whole, tells = np.stack([sample for sample, _ in samples]), samples[0][1]
        if whole.ndim != 5:
            assert name not in found
            continue
        low, high = extremes(whole, tells, axis=(0, 1, 3, 4))
        assert np.array_equal(found[name].low, low)
        assert np.array_equal(found[name].high, high)


@both
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("index", range(2 * len(SHAPES) + 1))
def test_what_is_no_number_shows_in_its_tensor_and_in_no_other(layout, index, number):
    (buffer,) = filled(layout, 1)
    placed = layout.positions[index % len(layout.positions)]
    buffer[placed.start + placed.piece.elements // 2] = number
    found = MinMaxObserver(layout).add(buffer)
    bad = ~np.isfinite(found.low) | ~np.isfinite(found.high)
    shows = number != -np.inf or "low" in placed.piece.tells or placed.piece.elements == 1
    assert np.flatnonzero(bad).tolist() == [placed.row] * shows
