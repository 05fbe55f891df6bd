"""Declarations: the stored signatures of the stages, so that a plan loads no stage.

Rebuilt when any file of the package changed. The stored form is sealed with its digest and also
validated: a suffix becomes a part of paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from npumake import digest
from npumake.cache.sealed import sealed, unsealed
from npumake.digest import Json
from npumake.make.memory import BuildMemory
from npumake.stages import STAGES
from npumake.stages.stage import Stage, every_stage

_SUFFIX = re.compile(r"(\.\w+)+")


def stages(memory: BuildMemory) -> Mapping[str, Stage]:
    """Every stage by name, in order."""
    file, code = memory.root / "stages.json", memory.code.package_digest
    declared = _remembered(file, code)
    if declared is None:
        declared = every_stage()
        documents = [digest.plain(stage) for stage in declared.values()]
        memory.keep(file, sealed(_identity(code), documents))
    return declared


def _remembered(file: Path, code: str) -> Mapping[str, Stage] | None:
    """The stored declarations; None if this code stored none, or they are damaged."""
    try:
        documents = unsealed(_identity(code), file.read_bytes())
        if documents is None:
            return None
        declared = [_stage(stage) for stage in documents]
    except (OSError, ValueError, TypeError):
        return None
    is_whole = tuple(stage.name for stage in declared) == STAGES
    is_sound = all(_SUFFIX.fullmatch(stage.suffix) for stage in declared)
    return {stage.name: stage for stage in declared} if is_whole and is_sound else None


def _stage(document: Json) -> Stage:
    """Raises TypeError or ValueError for anything but a mapping with the stage's fields."""
    fields: Json = dict(document)
    lists: Json = {name: tuple(item) for name, item in fields.items() if isinstance(item, list)}
    return Stage(**{**fields, **lists})


def _identity(code: str) -> str:
    return f"stages of {code}"
