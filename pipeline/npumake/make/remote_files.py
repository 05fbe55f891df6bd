"""Where a remote cache may be named. Every build looks here, so nothing is loaded for it."""

from __future__ import annotations

import os
from pathlib import Path

REMOTE, MODE = "NPUMAKE_CACHE_REMOTE", "NPUMAKE_REMOTE"
MODES = ("read", "write", "off")
WORKSPACE_FILE, USER_FILE, TRUST_FILE = "npumake.yaml", "config.yaml", "trust.yaml"
KEY_FILE = "signing.key"
NO_REMOTE = "write  cache: {remote: URL}  in npumake.yaml, or set NPUMAKE_CACHE_REMOTE"


def user_folder() -> Path:
    """Where the user's own settings are, as the XDG base directories have it."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(home) / "npumake"


def is_configured(workspace: Path) -> bool:
    """Whether anything here could name a remote."""
    if REMOTE in os.environ:
        return bool(os.environ[REMOTE])
    files = (workspace / WORKSPACE_FILE, user_folder() / USER_FILE)
    return any(os.path.lexists(file) for file in files)
