"""The inputs of an evaluation: its section and files, the model's input size and metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npumake.detection.metadata import Metadata
from npumake.evaluate.boxes_in_picture import Size
from npumake.project.files import SourceFiles
from npumake.project.sections import Evaluation
from npumake.project.transforms import Transform

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Setting:
    """`transforms` and `input_size` (height, width) are those of the model's first input."""

    evaluation: Evaluation
    sources: SourceFiles
    transforms: Sequence[Transform]
    input_size: Size
    metadata: Metadata | None
