"""Recipe: the ranges, switches and types of a build, and the trials behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from npumake import digest
from npumake.digest import Json
from npumake.errors import CacheError
from npumake.quant.calibration.ranges import Range
from npumake.quant.correction.rescale_groups import Factors

PER_CHANNEL_LINE = "Perchannel quantization is enabled."  # of hb_mapper's log


@dataclass(frozen=True)
class RecipeTrial:
    """A trial: the closeness of its outputs, their cosine, whether it was kept, its argmax
    ties, and its share of multiply-accumulates that read int16."""

    what: str
    closeness: float
    cosine: float
    kept: bool
    ties: int = 0
    int16: float = 0.0

    @property
    def summary(self) -> str:
        """The figures as text; of vector outputs closeness and cosine are one."""
        cosine = f", cosine {self.cosine:.6f}" if self.cosine != self.closeness else ""
        ties = f", {self.ties} ties" if self.ties else ""
        int16 = f", {self.int16:.1%} int16" if self.int16 else ""
        return f"closeness {self.closeness:.6f}{cosine}{ties}{int16}"


@dataclass(frozen=True)
class Recipe:
    """The range of every tensor, and whether the grids are symmetric.

    `percentile` is that of `max_percentile`; `int16_ranges` are the int16 ranges. `wide` are int16
    tensors around uneven channels and at the outputs (search.int16_tensors), `sensitive` those that
    make most of the noise (search.sensitive_tensors). `methods` has the method of each tensor
    where they differ (`mix`). `switches` are those of correction.corrections; `factors` rescale the
    float model first, and the ranges are those of the rescaled one.
    """

    method: str
    symmetric: bool
    ranges: Mapping[str, Range]
    methods: Mapping[str, str] = field(default_factory=dict)
    trials: tuple[RecipeTrial, ...] = ()
    switches: tuple[str, ...] = ()
    factors: Factors = field(default_factory=dict)
    int16_ranges: Mapping[str, Range] = field(default_factory=dict)
    wide: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    percentile: float | None = None
    selected: str = ""  # the method's name in the log of the vendor's search

    suffix: ClassVar[str] = ".json"

    @property
    def named(self) -> str:
        """The name of the method."""
        if self.selected:
            return self.selected
        return self.method if self.percentile is None else f"{self.method} {self.percentile}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The trials as text, the best last; empty without trials."""
        if not self.trials:
            return ()
        tried = sorted(self.trials, key=lambda trial: (trial.kept, trial.closeness))
        rows = (f"{trial.what:<40} {self._figures(trial)}" for trial in tried)
        return (*rows, f"Select {self.named} method.", *self._switch_line(), *self._front_lines())

    @property
    def front(self) -> tuple[RecipeTrial, ...]:
        """Accuracy against int16: the trials that are closer than all with as small a share, the
        smallest share first. Empty where no trial has int16."""
        front: list[RecipeTrial] = []
        for trial in sorted(self.trials, key=lambda trial: (trial.int16, -trial.closeness)):
            if not front or trial.closeness > front[-1].closeness:
                front.append(trial)
        return tuple(front) if any(trial.int16 for trial in self.trials) else ()

    def _front_lines(self) -> tuple[str, ...]:
        rows = (f"{trial.int16:>6.1%}  {trial.closeness:.6f}  {trial.what}" for trial in self.front)
        return ("int16, closeness, by what:", *rows) if self.front else ()

    def _figures(self, trial: RecipeTrial) -> str:
        """A vendor's search shows the cosine, whatever it selects by."""
        return f"cosine-similarity {trial.cosine:.6f}" if self.selected else trial.summary

    def _switch_line(self) -> tuple[str, ...]:
        """The line for the switches."""
        if self.selected:
            return (PER_CHANNEL_LINE,) if "per_channel" in self.switches else ()
        return (f"Keep {', '.join(self.switches)}.",) if self.switches else ()

    def save(self, path: Path) -> None:
        path.write_text(digest.text(self, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Recipe:
        """Raises CacheError for a file that `save` did not write."""
        try:
            return cls.of_document(json.loads(path.read_bytes()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CacheError(f"not a recipe: {error}", str(path)) from error

    @classmethod
    def of_document(cls, document: Json) -> Recipe:
        """The recipe of its plain document. Raises KeyError and others for a foreign one."""
        return cls(
            document["method"],
            document["symmetric"],
            _read(document["ranges"]),
            document["methods"],
            tuple(RecipeTrial(**trial) for trial in document["trials"]),
            tuple(document["switches"]),
            dict(document["factors"]),
            _read(document["int16_ranges"]),
            tuple(document["wide"]),
            tuple(document["sensitive"]),
            document["percentile"],
            document["selected"],
        )


def _read(pairs: Mapping[str, list[float]]) -> dict[str, Range]:
    return {name: Range(*pair) for name, pair in pairs.items()}
