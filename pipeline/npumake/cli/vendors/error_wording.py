"""Rewords errors of the generated project for the user of a vendor's command.

Our keys become options of the command, and paths start at the folder of the user's file.
`dialects.advice` rewords the keys of the vendor's file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from npumake.dialects.advice import GROUPS
from npumake.dialects.phrases import respelling

# Keys of project.yaml, replaced by the options of the command.
WORDS = respelling(
    ((r"`allow: \[(?:\w+, )*(\w+)\]` under `[^`]*`", r"`--allow \1` on the command line"),)
)
_ABOVE = re.compile(r"(?:\.\./)+[^`'\"\s]*")


def wording_for(folder: Path, start: Path) -> Callable[[str], str]:
    """A function that rewords errors of the project in `folder` for a vendor's file in `start`."""

    def worded(text: str) -> str:
        vendor_text = GROUPS.text(WORDS(text))
        return _ABOVE.sub(lambda match: os.path.relpath(folder / match[0], start), vendor_text)

    return worded
