"""Probes in the store, each by its key, so that a sensitivity is computed once.

The key is a document like that of a stage: code, tools, the calibrated graph, its samples, and
which of its calibration nodes quantize.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from npumake import digest
from npumake.cache.publish import scratch
from npumake.cache.store import Record
from npumake.debug import probing
from npumake.debug.probing import Sums
from npumake.debug.sensitivity import Question
from npumake.errors import CacheError
from npumake.kernels.measure import Agreement
from npumake.make.memory import BuildMemory
from npumake.make.node import NodeKey


class Probes:
    """Probes of one graph and its samples; `inputs` are the digests of both, and of the custom
    operators. Thread-safe."""

    def __init__(self, memory: BuildMemory, inputs: Mapping[str, str]) -> None:
        self._memory = memory
        self._inputs = dict(inputs)
        self._code = memory.code.closure(probing.__name__)

    def get(self, question: Question) -> Sums | None:
        """The stored result; None if there is none. Raises CacheError for a record that is not a
        probe."""
        record = self._memory.store.recall(digest.of_document(self._key(question)))
        if record is None:
            return None
        with self._scratch() as path:
            if not self._memory.store.fetch(record.digest, path):
                return None
            return _read(path)

    def __setitem__(self, question: Question, sums: Sums) -> None:
        document = self._key(question)
        with self._scratch() as path:
            path.write_text(
                json.dumps([asdict(measure) for measure in sums]) + "\n", encoding="utf-8"
            )
            blob = self._memory.store.put(path)
            record = Record(document, blob, path.stat().st_size)
            self._memory.store.remember(digest.of_document(document), record)

    def _scratch(self) -> AbstractContextManager[Path]:
        return scratch(self._memory.root / "probe.json", self._memory.root)

    def _key(self, question: Question) -> NodeKey:
        return {
            "stage": "probe",
            "code": self._code.digest,
            "tools": dict(self._code.tools),
            "params": {"places": list(question.places), "output": question.output},
            "target": None,
            "inputs": self._inputs,
            "sources": {},
            "traced": {},
        }


def _read(path: Path) -> Sums:
    try:
        return tuple(Agreement(**measure) for measure in json.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise CacheError(f"not a probe: {error}", str(path)) from error
