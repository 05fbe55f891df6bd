"""Errors of a project in a vendor's output folder, as the user of the vendor's command reads them:
options of the command, and paths from the folder of the file. Keys are `dialects.advice`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from npumake.dialects.advice import GROUPS
from npumake.dialects.phrases import respelling

# What a project says beside a vendor's file, where a command has an option for it.
WORDS = respelling(
    (
        (r"`allow: \[(\w+)\]` under `[^`]*`(?! if)", r"`--allow \1` on the command line"),
        (r"`allow: \[(\w+)\]` under `[^`]*` if", r"`--allow \1` on the command line if"),
    )
)
_ABOVE = re.compile(r"(?:\.\./)+[^`'\"\s]*")


def words_of(folder: Path, start: Path) -> Callable[[str], str]:
    """A text of an error of the project in `folder` as the user of a file in `start` reads it."""

    def said(text: str) -> str:
        theirs = GROUPS.text(WORDS(text))
        return _ABOVE.sub(lambda found: os.path.relpath(folder / found[0], start), theirs)

    return said
