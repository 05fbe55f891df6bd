"""The result of running a compiled file: per output, against the float model and the integers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from npumake import digest
from npumake.digest import Json
from npumake.errors import CacheError

MAX_NAMES = 8  # of nodes in a line


@dataclass(frozen=True)
class CheckedOutput:
    """`cosine` is against the float model, over all samples. The largest difference to the integer
    engine is in `codes` for a quantized output, else `relative` to the largest magnitude."""

    name: str
    cosine: float
    codes: int | None
    relative: float | None
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class CompiledCheck:
    """`skipped` is the reason why the file was not run; empty if it was. `together` are the nodes
    whose results the file does not show: each was judged with the nodes behind it."""

    target: str
    runtime: str
    samples: int
    outputs: tuple[CheckedOutput, ...]
    notes: tuple[str, ...] = ()
    skipped: str = ""
    together: tuple[str, ...] = ()

    suffix: ClassVar[str] = ".json"

    @property
    def lines(self) -> list[str]:
        """The lines below the table."""
        if self.skipped:
            return [f"the compiled file was not run: {self.skipped}"]
        return list(self.notes)

    @property
    def facts(self) -> dict[str, Json]:
        run = {"run in": self.runtime, "samples": self.samples} if self.runtime else {}
        together = {"judged together": _listed(self.together)} if self.together else {}
        notes = {"notes": self.lines} if self.lines else {}
        return {"target": self.target, **run, **together, **notes}

    @property
    def rows(self) -> tuple[tuple[Json, ...], ...]:
        """Name, cosine, codes and relative difference of each output."""
        return tuple((o.name, o.cosine, o.codes, o.relative) for o in self.outputs)

    def save(self, path: Path) -> None:
        path.write_text(digest.text({"check": self}, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())["check"]
            outputs = tuple(
                CheckedOutput(**{**output, "shape": tuple(output["shape"])})
                for output in document["outputs"]
            )
            notes, together = tuple(document["notes"]), tuple(document["together"])
            lists = {"outputs": outputs, "notes": notes, "together": together}
            return cls(**{**document, **lists})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CacheError(f"not a check of a compiled file: {error}", str(path)) from error


def _listed(names: tuple[str, ...]) -> str:
    rest = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")
