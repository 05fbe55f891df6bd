"""A malformed input, as a row of a table, and what becomes of a command that meets it.

Every command runs in a process of its own, which may take MOST_MEMORY more than an idle one and
MOST_SECONDS of a processor, in a project that lies beside files which are none of its business. The
processes are forked from one that has imported everything (`forks`), so that a row takes
milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from forks import Limits, run_fork, user_environment
from npumake import digest
from workspaces import lay_out

MOST_SECONDS = 10
MOST_MEMORY = 2 << 30  # bytes of address space beyond an idle process
OURS = ("projects/digits/out", "projects/digits/.doit.db", "cache")  # where a build may write


class Case(NamedTuple):
    """`damage` is done to the folder of a copy of digits, then `npumake *command` is run there."""

    name: str
    damage: Callable[[Path], object]
    command: tuple[str, ...]
    code: int
    words: tuple[str, ...]


class Outcome(NamedTuple):
    """`code` is negative for a signal: -27 when the time was up, -14 when it waited for ever."""

    code: int
    output: str


@dataclass(frozen=True)
class Server:
    """Runs commands that share the store in `cache`; what it has `loaded` is everything, or only
    "libraries"."""

    cache: Path
    loaded: Literal["everything", "libraries"] = "everything"

    def run(
        self, folder: Path, command: tuple[str, ...], path: Sequence[Path] = (), **variables: str
    ) -> Outcome:
        """What becomes of `npumake *command` in a folder. `path` goes before sys.path, and
        `variables` into the environment."""
        code, output = run_fork(
            *("-m", "npumake.cli.main", *command),
            folder=folder,
            environment={**user_environment(), "NPUMAKE_CACHE": str(self.cache), **variables},
            path=path,
            limits=Limits(MOST_SECONDS, MOST_MEMORY),
            loaded=self.loaded,
        )
        return Outcome(code, output)


def check(case: Case, server: Server, root: Path) -> None:
    """One error, with its words and its exit code, no traceback, and nothing touched elsewhere."""
    project = lay_out(root).project
    case.damage(project)
    before = tree(root)
    outcome = server.run(project, case.command)
    assert "Traceback" not in outcome.output, outcome.output
    assert outcome.code == case.code, outcome.output
    assert [text for text in case.words if text not in outcome.output] == [], outcome.output
    assert outcome.output.count("error: ") == 1, outcome.output
    assert tree(root) == before


def tree(root: Path) -> dict[str, str]:
    """Every file and link below `root` by its name, apart from what a build writes."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            known = path.relative_to(root).as_posix()
            if not known.startswith(OURS):
                found[known] = _content(path)
    return found


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"→ {os.readlink(path)}"
    if path.is_file() and path.stat().st_size > 1 << 30:
        return f"a hole of {path.stat().st_size} bytes"
    return digest.of_file(path) if path.is_file() and os.access(path, os.R_OK) else "no file"
