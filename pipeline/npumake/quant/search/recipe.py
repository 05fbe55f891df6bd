"""Recipe: what was decided about the ranges, and on what evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from npumake import digest
from npumake.errors import CacheError
from npumake.quant.calibration.ranges import Range
from npumake.quant.correction.rescale_groups import Factors

PER_CHANNEL_LINE = "Perchannel quantization is enabled."  # of hb_mapper's log


@dataclass(frozen=True)
class RecipeTrial:
    """Something that was tried: how close the answers came, by their cosine alone too, and
    whether it was kept. `ties` are those among the largest numbers of the answers."""

    what: str
    closeness: float
    cosine: float
    kept: bool
    ties: int = 0

    @property
    def summary(self) -> str:
        """For a person; of vectors both are one."""
        cosine = f", cosine {self.cosine:.6f}" if self.cosine != self.closeness else ""
        ties = f", {self.ties} ties" if self.ties else ""
        return f"closeness {self.closeness:.6f}{cosine}{ties}"


@dataclass(frozen=True)
class Recipe:
    """The range of every tensor, and whether zero is the middle of its grid.

    `percentile` is that of `max_percentile`; `int16_ranges` are those of int16, `wide` the nodes
    that are int16 where the project says nothing of them (calibration.uneven, search.tail), and
    `sensitive` the tensors that are (search.sensitive).
    `methods` names for each tensor the method that gave its range, where they differ (`mix`);
    `switches` are those of recovery.switches that are on, `factors` how the channels of the
    float model are rescaled first, whose ranges these then are."""

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
    selected: str = ""  # the method's name in the log of the vendor whose search it was

    suffix: ClassVar[str] = ".json"

    @property
    def named(self) -> str:
        """The method, for a person."""
        if self.selected:
            return self.selected
        return self.method if self.percentile is None else f"{self.method} {self.percentile}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The trials for a person, the losers first; nothing where nothing was tried."""
        if not self.trials:
            return ()
        tried = sorted(self.trials, key=lambda trial: (trial.kept, trial.closeness))
        rows = (f"{trial.what:<40} {self._figures(trial)}" for trial in tried)
        return (*rows, f"Select {self.named} method.", *self._kept())

    def _figures(self, trial: RecipeTrial) -> str:
        """A vendor's search compares by the cosine, whatever else it chooses by."""
        return f"cosine-similarity {trial.cosine:.6f}" if self.selected else trial.summary

    def _kept(self) -> tuple[str, ...]:
        """What goes with the method."""
        if self.selected:
            return (PER_CHANNEL_LINE,) if "per_channel" in self.switches else ()
        return (f"Keep {', '.join(self.switches)}.",) if self.switches else ()

    def save(self, path: Path) -> None:
        path.write_text(digest.text(self, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Recipe:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())
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
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CacheError(f"not a recipe: {error}", str(path)) from error


def _read(pairs: Mapping[str, list[float]]) -> dict[str, Range]:
    return {name: Range(*pair) for name, pair in pairs.items()}
