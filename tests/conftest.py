"""Workspaces for every room: built once per test process, copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from workspaces import Workspace, lay_out


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = lay_out(tmp_path_factory.mktemp("built") / "w")
    workspace.doit()
    return workspace


@pytest.fixture
def built(built_once: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the built workspace: another place, the same content."""
    shutil.copytree(built_once.root, tmp_path / "w", symlinks=True)
    return Workspace(tmp_path / "w")


@pytest.fixture
def fresh(tmp_path: Path) -> Workspace:
    """Nothing built yet."""
    return lay_out(tmp_path / "w")
