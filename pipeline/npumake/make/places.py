"""The paths of the projects and the cache of a workspace. Imports little: every build starts
here."""

from __future__ import annotations

import os
from pathlib import Path


def workspace(directory: Path) -> Path:
    """The nearest folder at or above `directory` that holds `projects/`; else itself."""
    absolute = Path(os.path.abspath(directory))
    for folder in (absolute, *absolute.parents):
        if (folder / "projects").is_dir() and (folder / "dodo.py").is_file():
            return folder
    return absolute


def cache_directory(directory: Path) -> Path:
    """NPUMAKE_CACHE, or `cache/` of the workspace around `directory`."""
    setting = os.environ.get("NPUMAKE_CACHE")
    return Path(setting) if setting else workspace(directory) / "cache"


def project_directories(directory: Path) -> tuple[Path, ...]:
    """`directory` if it is a project, else all projects below `projects/`; absolute."""
    directory = directory.absolute()
    if (directory / "project.yaml").is_file():
        return (directory,)
    below = directory / "projects"
    try:
        names = sorted(os.listdir(below))
    except OSError:
        return ()
    return tuple(below / name for name in names if os.path.exists(f"{below}/{name}/project.yaml"))


def is_paranoid() -> bool:
    """Whether NPUMAKE_PARANOID, or else CI, requires reading every file again."""
    setting = os.environ.get("NPUMAKE_PARANOID", os.environ.get("CI", ""))
    return setting.lower() not in ("", "0", "false")
