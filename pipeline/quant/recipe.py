"""Recipe: what was decided about the ranges, and on what evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from pipeline import digest
from pipeline.errors import CacheError
from pipeline.graph import Graph
from pipeline.quant.grids import activation_grid, image_grid
from pipeline.quant.images import images
from pipeline.quant.qdq import with_qdq
from pipeline.quant.ranges import Range
from pipeline.targets.target import Target


@dataclass(frozen=True)
class Trial:
    """Something that was tried: what the outputs came to, as a cosine, and whether it was kept."""

    what: str
    cosine: float
    kept: bool


@dataclass(frozen=True)
class Recipe:
    """The range of every tensor, and whether zero is the middle of its grid.

    `methods` names for each tensor the method that gave its range, where they differ (`mix`)."""

    method: str
    symmetric: bool
    ranges: Mapping[str, Range]
    methods: Mapping[str, str] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()

    suffix: ClassVar[str] = ".json"

    @property
    def lines(self) -> tuple[str, ...]:
        """The trials for a person, the losers first; nothing where nothing was tried."""
        if not self.trials:
            return ()
        tried = sorted(self.trials, key=lambda trial: (trial.kept, trial.cosine))
        rows = (f"{trial.what:<40} cosine {trial.cosine:.6f}" for trial in tried)
        return (*rows, f"Select {self.method} method.")

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(digest.plain(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Recipe:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())
            return cls(
                document["method"],
                document["symmetric"],
                {name: Range(*pair) for name, pair in document["ranges"].items()},
                document["methods"],
                tuple(Trial(**trial) for trial in document["trials"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CacheError(f"not a recipe: {error}", str(path)) from error


def calibrated_with(graph: Graph, recipe: Recipe, target: Target) -> Graph:
    """`graph` with the Q/DQ that the recipe says, on the chip's grids."""
    scheme = replace(target.activations, symmetric=recipe.symmetric)
    grids = {name: activation_grid(*found, scheme) for name, found in recipe.ranges.items()}
    grids |= {name: image_grid(scheme) for name in images(graph)}
    return with_qdq(graph, grids, target)
