"""A stage that failed through a mistake of the user, for doit."""

from __future__ import annotations

from doit.exceptions import TaskFailed

from npumake.errors import PipelineError


class FailedStage(TaskFailed):  # type: ignore[misc]  # doit is not typed
    """A user's mistake: data for the reporter, not a traceback."""

    def __init__(self, error: PipelineError) -> None:
        super().__init__(str(error), report=True)
        self.error = error
