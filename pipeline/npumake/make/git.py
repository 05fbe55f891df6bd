"""Git's data of a workspace: the commit that a branch left, the changes since, files at it.

Only `check_out` writes, and that elsewhere.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from npumake.errors import ProjectError

FETCH = "fetch it first: CI services fetch only one commit unless configured"
# Neither locks nor a pager, nor words that depend on the user's language.
ENVIRONMENT = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
LINK = b"120000"  # the mode of a symbolic link
# A hook of git sets these; they would select another repository than that of the path.
INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
NO_COMMIT = "0" * 40  # GitHub's base of the first push of a branch


@dataclass(frozen=True)
class Commit:
    """A commit of the repository at `root`, by its full name."""

    root: Path
    name: str

    def changes(self) -> frozenset[str]:
        """The paths that differ from the commit: edited, added, removed, both names of a renamed
        file, and files that git does not track yet. Absolute; a link is not followed."""
        tracked = _git(
            self.root,
            *("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", self.name, "--"),
        )
        untracked = _git(self.root, "ls-files", "--others", "--exclude-standard", "-z")
        names = (*tracked.split(b"\0"), *untracked.split(b"\0"))
        return frozenset(f"{self.root}/{os.fsdecode(name)}" for name in names if name)

    def file(self, path: Path) -> bytes | None:
        """The bytes of a file as they were; None if there was none. Raises ProjectError."""
        name = _blobs(self).get(self._name(path))
        return None if name is None else _git(self.root, "cat-file", "blob", name)

    def holds(self, path: Path) -> bool:
        """Whether there was a file and not a link."""
        return self._name(path) in _blobs(self)

    def _name(self, path: Path) -> bytes:
        return os.fsencode(os.path.relpath(os.path.realpath(path), self.root))

    def check_out(self, place: Path) -> None:
        """The files of the commit, in a new folder. Raises ProjectError."""
        _git(self.root, "worktree", "add", "--quiet", "--detach", str(place), self.name)

    def remove(self, place: Path) -> None:
        """Removes the checkout."""
        _git(self.root, "worktree", "remove", "--force", str(place))


@cache
def _blobs(commit: Commit) -> Mapping[bytes, str]:
    """The files of a commit, by path: the names of their contents."""
    blobs = {}
    tree = _git(commit.root, "ls-tree", "-r", "-z", "--full-tree", commit.name)
    for entry in filter(None, tree.split(b"\0")):
        facts, _, path = entry.partition(b"\t")
        mode, kind, name = facts.split(b" ")
        if kind == b"blob" and mode != LINK:
            blobs[path] = name.decode()
    return blobs


def repository(directory: Path) -> Path | None:
    """The top folder of the repository around `directory`; None outside of any."""
    for folder in (directory.resolve(), *directory.resolve().parents):
        if os.path.lexists(folder / ".git"):
            return folder
    return None


def commit_before(root: Path, ref: str) -> Commit:
    """The commit where the present one left `ref`; `ref` itself if their histories do not meet.

    Raises ProjectError without git, and for an unknown `ref`.
    """
    try:
        verify = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        name = _git(root, *verify).decode().strip()
    except UnknownError:
        raise ProjectError(f"no commit `{ref}`", "--since", FETCH) from None
    try:
        return Commit(root, _git(root, "merge-base", name, "HEAD").decode().strip())
    except UnknownError:  # unrelated, or a history that was not fetched
        return Commit(root, name)


class UnknownError(ProjectError):
    """git returned nothing and no error: no such commit."""


def _git(root: Path, *arguments: str) -> bytes:
    """Standard output. Raises UnknownError, and ProjectError in git's own words."""
    command: Sequence[str] = ("git", "-C", str(root), "--no-pager", *arguments)
    inherited = {name: value for name, value in os.environ.items() if name not in INHERITED}
    try:
        process = subprocess.run(
            command, env={**inherited, **ENVIRONMENT}, capture_output=True, check=False
        )
    except FileNotFoundError:
        raise ProjectError("git is not installed", "--since", "install it") from None
    if process.returncode == 0:
        return process.stdout
    words = process.stderr.decode("utf-8", "replace").strip().splitlines()
    if not words:
        raise UnknownError("git returned nothing", " ".join(arguments))
    raise ProjectError(words[0].removeprefix("fatal: "), "git", "\n".join(words[1:]).strip())
