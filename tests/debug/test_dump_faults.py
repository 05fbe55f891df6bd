"""Faults in dumps of LiteRT and IREE: the first node is named, and its cause; right dumps agree.

A model takes up to a minute, so CI has one of each width; NPUMAKE_EVERY=1 has all.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

from workspaces import REPO, few, shared_data

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shared_data().is_dir(), reason="shared/data is not here"),
]
NAMED, EXPLAINED = 0.95, 0.80  # the shares that the issue asks for
COUNT = 2  # faults of a kind in a dump


def benchmark(name: str) -> ModuleType:
    """A module of benchmarks/, which stays off sys.path: tests/ has folders of the same names."""
    folder = str(REPO / "benchmarks")
    sys.path.append(folder)
    try:
        return import_module(name)
    finally:
        sys.path.remove(folder)


DUMPS, TAMPERING, FAULTS = map(benchmark, ("dump_boards", "dump_tampering", "dump_faults"))
SMALL = {("cifar10_resnet8_float", "int16", "litert"), ("kws_tiny_float", "int8", "litert")}
EVERY = [
    *((model, types, "litert") for model in DUMPS.MODELS for types in ("int8", "int16")),
    *((model, "int8", "iree") for model in DUMPS.IREE_MODELS),
]
BOARDS = few(EVERY, lambda at: (at[0].partition("/")[2].removesuffix(".tflite"), *at[1:]) in SMALL)


def board(at: tuple[str, str, str]):
    runtime = {"litert": "ai_edge_litert.interpreter", "iree": "iree.runtime"}[at[2]]
    pytest.importorskip(runtime, reason="npumake[compilers] is not installed")
    return DUMPS.board(*at)


@pytest.mark.parametrize("at", BOARDS, ids="-".join)
@pytest.mark.parametrize("way", range(3))
def test_a_right_dump_agrees(at, way):
    found = FAULTS.compared(board(at), board(at).dump, np.random.default_rng(way))
    assert found.first is None
    assert found.rows


@pytest.mark.parametrize("at", BOARDS, ids="-".join)
def test_the_first_node_is_named_and_its_cause(at):
    kinds = [*TAMPERING.JUDGED, *(TAMPERING.REBUILT if at[1:] == ("int8", "litert") else ())]
    found = list(FAULTS.outcomes(board(at), dict.fromkeys(kinds, COUNT), seed=1))
    assert {one.kind for one in found} == set(kinds)
    assert sum(one.is_named for one in found) >= NAMED * len(found)
    assert sum(one.is_explained for one in found) >= EXPLAINED * len(found)
