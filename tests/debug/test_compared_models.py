"""How many samples are compared at once: as many as the bound of their tensors holds."""

from __future__ import annotations

import pytest

from npumake.bundle.program import Tensor
from npumake.debug.compared_models import MAX_COMPARED_BYTES, samples_at_once


@pytest.mark.parametrize(
    ("elements", "count"),
    [(1, 4), (MAX_COMPARED_BYTES // 36, 4), (MAX_COMPARED_BYTES // 18, 2), (1 << 28, 1)],
)
def test_large_samples_are_compared_one_by_one(
    elements: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUMAKE_THREADS", "4")
    halves = [Tensor((elements - elements // 2,), "int8"), Tensor((1, elements // 2), "int8")]
    assert samples_at_once(halves) == count
