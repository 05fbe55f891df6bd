"""A file system that fills up anywhere in a build is one error, and no half of a file."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.laboratory import digests, lay_out_mice
from malformed.runner import Server
from workspaces import Workspace, few

pytestmark = pytest.mark.slow
KILOBYTES = range(760, 1200, 20)  # sources and memos fit in any; all that is made, in none


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A place for a tmpfs, which is gone in the end."""
    place = tmp_path / "small"
    place.mkdir()
    yield place
    subprocess.run(["umount", str(place)], check=False, capture_output=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return Server(tmp_path_factory.mktemp("cache"))


def mounted(place: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing may be mounted here: {done.stderr.strip()}")


def build(server: Server, workspace: Workspace) -> tuple[int, str]:
    cache = str(workspace.root / "cache")
    found = server.run(workspace.root, ("build",), NPUMAKE_CACHE=cache)
    assert "Traceback" not in found.output, found.output
    return found.code, found.output


@pytest.mark.parametrize("kilobytes", few(KILOBYTES, lambda size: size in (820, 960)))
def test_a_disk_that_fills_up_is_one_error_and_what_is_there_is_whole(
    kilobytes: int, server: Server, small: Path, tmp_path: Path
) -> None:
    whole = lay_out_mice(tmp_path / "whole", "custom")
    assert build(server, whole)[0] == 0
    mounted(small, f"size={kilobytes}k")
    workspace = lay_out_mice(small / "w", "custom")
    code, said = build(server, workspace)
    assert (code, said.count("error: ")) in ((5, 1), (0, 0)), said
    right = digests(whole)
    assert {n: d for n, d in digests(workspace).items() if right.get(n) != d} == {}
    subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
    assert build(server, workspace)[0] == 0
    assert digests(workspace) == right
