"""Errors in the words of hb_mapper and hb_compile: their keys, options and paths for ours."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

# what an error says of our YAML → what it says of theirs
WORDS = (
    (r"`allow: \[(\w+)\]` under `[^`]*`(?! if)", r"`--allow \1` on the command line"),
    (r"`allow: \[(\w+)\]` under `[^`]*` if", r"`--allow \1` on the command line if"),
    (
        r"see `layout` and `type` under `inputs:`",
        "see `input_layout_train` and `input_type_train`",
    ),
    (r"`dtype` under `data:`", "`cal_data_type`"),
    (
        r"`offset: 128` under `inputs:` if these are 8-bit images",
        "`input_type_train` is rgb, bgr or gray for pictures of 8 bits",
    ),
    (r"`stacked: true` under `data:` if .*", "one sample in a file"),
    (r"`transforms: .*` make an image fit", "`preprocess_on: True` makes a picture fit"),
    (r"fix it under `inputs:`, for example  .*", "give `input_shape`, for example 1x3x224x224"),
    (r"paths start at the project's directory", "paths start at the folder of the YAML file"),
    (r"write  weights: .*  under `model:`", "give `caffe_model`"),
    (r"end the model before it, by `model\.outputs`", "end the model before it, by `output_nodes`"),
    (r"leave `batch` out.*", "leave `input_batch` out"),
    (r"add  (\S+): \{files: \.\.\.\}", r"`cal_data_dir` needs a folder for `\1`"),
    (r"leave `mean` and `scale` to `inputs:` alone", "`norm_type: no_preprocess`"),
    (r"`mean: 127\.5` and `scale: 0\.00784314`", "`mean_value: 127.5`, `scale_value: 0.00784314`"),
    (r"`scale` lacks", "`scale_value` lacks"),
    (r"`mean` is meant", "`mean_value` is meant"),
    (
        r"samples of 0\.\.1 need `values: 0\.\.255`, or a `scale`",
        "for samples of 0..1 a `scale_value`",
    ),
    (r"the other `layout` fits", "the other `input_layout_train` fits"),
    (r"see `normalized`", "see `scale_value`"),
)
_ABOVE = re.compile(r"(?:\.\./)+[^`'\"\s]*")


def words_of(folder: Path, start: Path) -> Callable[[str], str]:
    """A text of an error of the project in `folder` as the user of a file in `start` reads it."""

    def said(text: str) -> str:
        for pattern, theirs in WORDS:
            text = re.sub(pattern, theirs, text)
        return _ABOVE.sub(lambda found: os.path.relpath(folder / found[0], start), text)

    return said
