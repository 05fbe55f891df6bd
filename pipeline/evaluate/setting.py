"""What an evaluation is of: its section and its files, the model's input and metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.detection.metadata import Metadata
from pipeline.evaluate.placed_boxes import Size
from pipeline.project.files import SourceFiles
from pipeline.project.sections import Evaluation
from pipeline.project.transforms import Transform

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Setting:
    """`transforms` and `fed`, height and width, are of the model's first input."""

    said: Evaluation
    sources: SourceFiles
    transforms: Sequence[Transform]
    fed: Size
    metadata: Metadata | None
