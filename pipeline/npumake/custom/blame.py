"""Converts exceptions of the user's code to a StageError at the user's line."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from npumake.errors import PipelineError, Place, StageError


@contextmanager
def blamed(doing: str, files: Collection[str]) -> Iterator[None]:
    """Raises StageError for an exception in the code of `files`, SystemExit included."""
    try:
        yield
    except PipelineError:  # ours: a file that cannot be read, or an import that is not allowed
        raise
    except (Exception, SystemExit) as error:
        message = str(error).strip().partition("\n")[0]
        what = f"{doing}: {type(error).__name__}" + (f": {message}" if message else "")
        raise StageError(what, _place(error, files)) from error


def _place(error: BaseException, files: Collection[str]) -> Place | str:
    """The innermost line in the user's files; for a syntax error, its own line."""
    if isinstance(error, SyntaxError) and error.filename in files:
        return Place(str(error.filename), error.lineno or 0, error.offset or 1)
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if frame.filename in files]
    if user_frames:
        return Place(user_frames[-1].filename, user_frames[-1].lineno or 0, 1)
    return ", ".join(sorted(files))
