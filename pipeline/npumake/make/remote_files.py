"""The files that may configure a remote cache. Every build reads this module, so it imports
nothing."""

from __future__ import annotations

import os
from pathlib import Path

REMOTE, MODE = "NPUMAKE_CACHE_REMOTE", "NPUMAKE_REMOTE"
MODES = ("read", "write", "off")
WORKSPACE_FILE, USER_FILE, TRUST_FILE = "npumake.yaml", "config.yaml", "trust.yaml"
KEY_FILE = "signing.key"
NO_REMOTE = "write  cache: {remote: URL}  in npumake.yaml, or set NPUMAKE_CACHE_REMOTE"


def user_folder() -> Path:
    """The folder of the user's settings, by the XDG base directories."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(home) / "npumake"


def is_configured(workspace: Path) -> bool:
    """Whether any of these files or variables may name a remote."""
    if REMOTE in os.environ:
        return bool(os.environ[REMOTE])
    files = (workspace / WORKSPACE_FILE, user_folder() / USER_FILE)
    return any(os.path.lexists(file) for file in files)
