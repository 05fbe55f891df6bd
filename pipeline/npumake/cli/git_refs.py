"""A workspace as it is at a git ref, in a temporary folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npumake.errors import ProjectError
from npumake.lifetime.temporaries import temporary_folder

NOT_SOURCES = {"out", "cache", ".git", "__pycache__"}


@contextmanager
def checked_out(workspace: Path, ref: str) -> Iterator[Path]:
    """The workspace at `ref`. Files that git does not track are those of today: models and data
    often are not, or are in a folder beside the workspace. Raises ProjectError."""
    commit = _git(workspace, ref, "rev-parse", "--verify", "--quiet", "--end-of-options",
                  f"{ref}^{{commit}}").strip()  # fmt: skip
    prefix = _git(workspace, ref, "rev-parse", "--show-prefix").strip()
    with temporary_folder() as folder:
        copy = folder / workspace.name
        index = {"GIT_INDEX_FILE": str(folder / ".index")}
        _git(workspace, ref, "read-tree", f"{commit}:{prefix}".rstrip("/"), **index)
        _git(workspace, ref, "checkout-index", "--all", f"--prefix={copy}/", **index)
        copy.mkdir(exist_ok=True)
        _link_untracked(workspace, copy, ref)
        for entry in os.scandir(workspace.parent):
            if entry.name != workspace.name and not os.path.lexists(folder / entry.name):
                os.symlink(entry.path, folder / entry.name)
        yield copy


def _link_untracked(workspace: Path, copy: Path, ref: str) -> None:
    for name in _git(workspace, ref, "ls-files", "--others", "-z").split("\0"):
        path = copy / name
        if not name or NOT_SOURCES & {*Path(name).parts} or os.path.lexists(path):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(workspace / name, path)


def _git(workspace: Path, ref: str, *arguments: str, **variables: str) -> str:
    """The output of git. Raises ProjectError."""
    try:
        run = subprocess.run(
            ["git", "-C", str(workspace), *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise ProjectError(f"git does not run: {error.strerror}", "--ref") from None
    if run.returncode:
        reason = run.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        message = f"git knows no commit `{ref}`" if arguments[1] == "--verify" else "git failed"
        raise ProjectError(message, "--ref", reason or "a branch, a tag or a commit")
    return os.fsdecode(run.stdout)
