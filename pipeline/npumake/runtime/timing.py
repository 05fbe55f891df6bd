"""Measures runs as `hrt_model_exec perf` does, and the time of each layer.

average latency = sum of the frames' latencies / frames       frame rate = frames / wall time
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.ort import Feeds
from npumake.engine.port import Port
from npumake.engine.reference import ReferenceSession
from npumake.runtime.session import Session


@dataclass(frozen=True)
class Perf:
    """In seconds: the latency of each frame, and the wall time of all."""

    latencies: tuple[float, ...]
    wall: float

    @property
    def average(self) -> float:
        return sum(self.latencies) / len(self.latencies)

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.wall


class LayerTiming(NamedTuple):
    """One instruction: seconds of each run, bytes read and written per run."""

    step: Instruction
    seconds: tuple[float, ...]
    bytes_read: int
    bytes_written: int


def noise(ports: Sequence[Port], seed: int = 0) -> dict[str, np.ndarray]:
    """Seeded feeds of -128..127 for every input; open dimensions are 1."""
    rng = np.random.default_rng(seed)
    return {
        port.name: rng.integers(
            *(0 if port.dtype.kind in "ub" else -128, 128),
            [size if isinstance(size, int) else 1 for size in port.shape],
        ).astype(port.dtype)
        for port in ports
    }


def perf(session: Session, feeds: Feeds, frames: int, seconds: float, threads: int) -> Perf:
    """Runs `frames` frames on `threads` threads; a nonzero `seconds` limits the time instead."""
    session.run(None, feeds)  # warm-up
    start = time.perf_counter()
    shares = [frames // threads + (index < frames % threads) for index in range(threads)]

    def worker(share: int) -> list[float]:
        latencies: list[float] = []
        while time.perf_counter() - start < seconds if seconds else len(latencies) < share:
            begun = time.perf_counter()
            session.run(None, feeds)
            latencies.append(time.perf_counter() - begun)
        return latencies

    with ThreadPoolExecutor(threads) as pool:
        all_latencies = [latency for latencies in pool.map(worker, shares) for latency in latencies]
    return Perf(tuple(all_latencies), time.perf_counter() - start)


def layers(
    program: Program, feeds: Feeds, runs: int, operators: Operators = NO_OPERATORS
) -> Iterator[LayerTiming]:
    """Runs the program step by step and times each instruction, `runs` times each."""
    session, tensors = ReferenceSession(program, operators), program.tensors
    values = dict(session.checked(feeds))
    for step in program.instructions:
        read, seconds = [values[name] for name in step.inputs], []
        for _ in range(runs):
            begun = time.perf_counter()
            outputs = list(session.execute(step, read))
            seconds.append(time.perf_counter() - begun)
        values.update(zip(step.outputs, outputs, strict=True))
        constant_bytes = sum(constant.nbytes for constant in step.constants.values())
        moved = {name: _bytes(tensors, name) for name in (*step.inputs, *step.outputs)}
        yield LayerTiming(
            step,
            tuple(seconds),
            constant_bytes + sum(moved[name] for name in step.inputs),
            sum(moved[name] for name in step.outputs),
        )


def _bytes(tensors: Mapping[str, Tensor], name: str) -> int:
    tensor = tensors[name]
    return int(np.prod(tensor.shape)) * np.dtype(tensor.dtype).itemsize
