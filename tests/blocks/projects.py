"""A block as a project, built for one target after another, and what each build left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from blocks.net import Block
from blocks.peer import errors, quantized_static
from npumake.api.build import build
from npumake.engine.ort import Feeds, OrtSession
from npumake.errors import PipelineError
from npumake.targets.reader import read_target

FLOATS = ("original_float", "optimized_float")
FLOAT_ERROR = 1e-5  # of the largest magnitude of an output
METHOD = "max"  # ranges as quantize_static finds them
# What is allowed beyond the error of quantize_static: other roundings are better or worse by luck.
SLACK, LEAST_ERROR = 1.1, 0.005


@dataclass(frozen=True)
class Judged:
    """What a build for one target left; errors are empty where it ended before that stage.

    `quantized` and `peer` have, for each compared output, the error of `quantized` and that of
    quantize_static. `refusal` is the typed error that ended the build: with a compiled file, that
    of its check.
    """

    floats: Mapping[str, float]
    quantized: Sequence[float]
    peer: Sequence[float]
    is_compiled: bool
    refusal: PipelineError | None = None

    def float_errors(self) -> dict[str, float]:
        """Of the stages that are not the given model's computation."""
        return {name: error for name, error in self.floats.items() if not error <= FLOAT_ERROR}

    def outputs_behind(self, slack: float = SLACK) -> dict[int, tuple[float, float]]:
        """Outputs that quantize_static keeps better, with both errors."""
        pairs = enumerate(zip(self.quantized, self.peer, strict=True))
        return {at: (a, b) for at, (a, b) in pairs if not a <= max(slack * b, LEAST_ERROR)}


@dataclass(frozen=True)
class Project:
    """A block in a folder that does not exist yet."""

    folder: Path
    block: Block
    method: str = METHOD

    def write(self, targets: Sequence[str]) -> None:
        self.folder.mkdir(parents=True)
        self.folder.joinpath("model.onnx").write_bytes(self.block.model)
        names = list(self.block.calibration[0])
        for number, feed in enumerate(self.block.calibration):
            for name in names:
                file = self.folder / "samples" / name / f"{number}.npy"
                file.parent.mkdir(parents=True, exist_ok=True)
                np.save(file, feed[name])
        document = {
            "model": {"path": "model.onnx"},
            "data": {n: {"files": f"samples/{n}/*.npy", "allow": ["few"]} for n in names},
            "calibration": {"method": self.method},
            "comparison": {"samples": 1, "compiled": 2},
            "targets": list(targets),
        }
        self.folder.joinpath("project.yaml").write_text(json.dumps(document), encoding="utf-8")

    def judged(self, target: str) -> Judged:
        """Builds it for the target. Any error but a PipelineError is a bug, and passes through."""
        refusal = None
        try:
            build(self.folder, [target])
        except PipelineError as error:
            refusal = error
        floats = {n: self._float_error(m) for n in FLOATS if (m := self._made(f"{n}.onnx"))}
        model = self._made(f"quantized.{target}.onnx")
        if model is None:
            return Judged(floats, (), (), False, refusal)
        is_compiled = any(self.folder.glob(f"out/{self.folder.name}.{target}.*"))
        peer = self._peer(read_target(target).activations.symmetric)
        return Judged(floats, self._errors(model), peer, is_compiled, refusal)

    def _made(self, name: str) -> bytes | None:
        file = self.folder / "out" / name
        return file.read_bytes() if file.is_file() else None

    @cached_property
    def _meant(self) -> list[list[np.ndarray]]:
        """The outputs of the given model on each held-out sample."""
        return outputs(self.block.model, self.block.held_out)

    def _peer(self, is_symmetric: bool) -> list[float]:
        """The errors of quantize_static; targets share them."""
        if is_symmetric not in self._peers:
            self._peers[is_symmetric] = self._errors(quantized_static(self.block, is_symmetric))
        return self._peers[is_symmetric]

    @cached_property
    def _peers(self) -> dict[bool, list[float]]:
        return {}

    def _float_error(self, model: bytes) -> float:
        """max |found - meant| / max |meant|, the largest over outputs and samples."""
        found = outputs(model, self.block.held_out)
        pairs = [
            (a, b)
            for ours, theirs in zip(found, self._meant, strict=True)
            for a, b in zip(*map(self.block.compared, (ours, theirs)), strict=True)
        ]
        return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)

    def _errors(self, model: bytes) -> list[float]:
        return errors(self.block, outputs(model, self.block.held_out), self._meant)


def outputs(model: bytes, feeds: Sequence[Feeds]) -> list[list[np.ndarray]]:
    session = OrtSession(model)
    return [session.run(None, feed) for feed in feeds]
