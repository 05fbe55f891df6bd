"""The same project makes the same bytes, wherever and however it is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from workspaces import Workspace, lay_out


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"NPUMAKE_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "1"},
        {"NPUMAKE_THREADS": "2", "OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo"},
    ],
    ids=["1 thread", "2 threads"],
)
def test_another_directory_thread_count_and_hash_seed_give_the_same_bytes(
    built_once: Workspace, tmp_path: Path, environment: dict[str, str]
) -> None:
    other = lay_out(tmp_path / "quite" / "another place")
    other.doit("-n", "2", environment=environment)
    assert other.digests() == built_once.digests()
    assert len(other.digests()) == 16


@pytest.mark.slow
def test_no_path_user_or_host_of_this_machine_is_in_an_artifact(built_once: Workspace) -> None:
    out = built_once.project / "out"
    told = [str(built_once.root), built_once.root.name + "/projects", str(Path.home()) + "/"]
    for path in (p for p in out.rglob("*") if p.is_file()):
        assert not [word for word in told if word.encode() in path.read_bytes()], path.name
