"""`npumake cache`: what a person types, in a workspace where the digits are built."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from remote_servers import faulty
from workspaces import Workspace, copied, lay_out, made

NODES = 16
BEHIND_METHOD = 12  # nodes that another method of calibration changes


def cache(
    here: Workspace,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    return here.npumake("cache", *arguments, environment=environment, check=check)


def document(here: Workspace, *arguments: str) -> Any:
    return json.loads(cache(here, *arguments, "--json").stdout)


def files(here: Workspace) -> set[str]:
    root = here.root / "cache"
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def another_method(here: Workspace) -> None:
    yaml = here.project / "project.yaml"
    yaml.write_text(yaml.read_text().replace("method: max", "method: kl"))


def recalled(here: Workspace) -> int:
    """How many artifacts a build of a clean project gets from the cache."""
    shutil.rmtree(here.project / "out")
    run = here.npumake("build")
    assert len(made(run, "made")) + len(made(run, "recalled")) == NODES
    return len(made(run, "recalled"))


@pytest.mark.slow
def test_ls_du_and_verify_tell_what_there_is(built: Workspace) -> None:
    rows = document(built, "ls")
    assert {row["in_use_by"].partition(":")[0] for row in rows} == {"digits"}
    assert len(rows) == NODES
    assert all(row["is_here"] for row in rows)
    usage = document(built, "du")
    blobs = sum(
        path.stat().st_size for path in (built.root / "cache/blobs").rglob("??*") if path.is_file()
    )
    assert usage["kinds"]["blob"] == blobs == usage["in_use"]
    assert usage["total"] == sum(usage["kinds"].values())
    assert document(built, "verify")["damages"] == []
    assert len(cache(built, "ls").stdout.splitlines()) == NODES


@pytest.mark.slow
def test_verify_names_damages_and_its_exit_code_counts(built: Workspace) -> None:
    blob = next(path for path in (built.root / "cache/blobs").rglob("??*") if path.is_file())
    blob.chmod(0o644)
    blob.write_bytes(b"damaged")
    run = cache(built, "verify", check=False)
    assert run.returncode == 5
    assert blob.relative_to(built.root / "cache").as_posix() in run.stdout


@pytest.mark.slow
def test_a_dry_run_tells_exactly_what_the_run_removes(built: Workspace) -> None:
    another_method(built)
    built.npumake("build")
    told = document(built, "gc", "--dry-run")
    before = files(built)
    done = document(built, "gc")
    assert done["removed"] == told["removed"]
    assert before - files(built) == {row["file"] for row in told["removed"]}
    assert len(told["removed"]) == 2 * BEHIND_METHOD
    assert recalled(built) == NODES
    assert document(built, "gc")["removed"] == []


@pytest.mark.slow
def test_what_a_build_would_find_is_in_use_without_its_artifacts(built: Workspace) -> None:
    shutil.rmtree(built.project / "out")
    assert document(built, "gc")["removed"] == []
    assert recalled(built) == NODES


@pytest.mark.slow
def test_a_pin_keeps_what_was_current_until_it_is_dropped(built: Workspace) -> None:
    cache(built, "pin", "v1.2")
    another_method(built)
    built.npumake("build")
    assert document(built, "gc")["removed"] == []
    assert document(built, "du")["pins"].keys() == {"v1.2"}
    cache(built, "unpin", "v1.2")
    assert len(document(built, "gc")["removed"]) == 2 * BEHIND_METHOD
    run = cache(built, "unpin", "v1.2", check=False)
    assert run.returncode == 2
    assert "no pin `v1.2`" in run.stderr


@pytest.mark.slow
def test_a_damaged_pin_stops_a_sweep(built: Workspace) -> None:
    cache(built, "pin", "v1")
    (built.root / "cache/pins/v1.json").write_bytes(b"{}")
    before = files(built)
    run = cache(built, "gc", check=False)
    assert run.returncode == 5
    assert "npumake cache unpin v1" in run.stderr
    assert files(built) == before


@pytest.mark.slow
def test_a_git_ref_keeps_what_its_projects_use(built: Workspace) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=built.root, check=True)

    (built.root / ".gitignore").write_text("out\ncache\n.doit.db*\n*.onnx\n")
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    another_method(built)
    git("checkout", "-q", "-b", "kl")
    git("commit", "-q", "-a", "-m", "kl")
    built.npumake("build")
    assert document(built, "gc", "--ref", "main")["removed"] == []
    assert len(document(built, "gc", "--ref", "kl")["removed"]) == 2 * BEHIND_METHOD
    run = cache(built, "gc", "--ref", "nonsense", check=False)
    assert run.returncode == 2
    assert "`nonsense`" in run.stderr
    assert not [name for name in files(built) if "npumake-" in name]


@pytest.mark.slow
def test_a_budget_removes_what_was_used_least_recently(built: Workspace) -> None:
    another_method(built)
    built.npumake("build")
    whole = document(built, "gc", "--max-size", "1G")
    assert whole["removed"] == []
    most = whole["left"] - 50_000
    swept = document(built, "gc", "--max-size", str(most))
    assert 0 < len(swept["removed"]) < 2 * BEHIND_METHOD
    assert swept["left"] <= most
    run = cache(built, "gc", "--max-size", "1K", check=False)
    assert run.returncode == 5
    assert "larger than --max-size" in run.stderr
    assert recalled(built) == NODES
    assert cache(built, "gc", "--max-size", "ten", check=False).returncode == 2


@pytest.mark.slow
def test_a_project_that_cannot_be_read_stops_a_sweep(built: Workspace) -> None:
    other = built.root / "projects" / "other"
    other.mkdir()
    (other / "project.yaml").write_text("modell: {}\n")
    before = files(built)
    run = cache(built, "gc", check=False)
    assert run.returncode == 2
    assert "modell" in run.stderr
    assert files(built) == before
    assert "other cannot be read" in cache(built, "ls").stdout


@pytest.mark.slow
def test_a_sweep_in_one_project_spares_the_others(built: Workspace) -> None:
    shutil.copytree(built.project, built.root / "projects" / "other", symlinks=True)
    another_method(Workspace(built.root, "other"))
    built.npumake("build")
    run = subprocess.run(
        ["bash", "-c", f"cd projects/digits && {_npumake()} cache gc --json"],
        cwd=built.root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(run.stdout)["removed"] == []


def _npumake() -> str:
    import sys

    return f"{sys.executable} -m npumake.cli.main"


def test_a_sweep_where_no_project_is_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache" / "quarantine").mkdir(parents=True)
    (tmp_path / "cache" / "quarantine" / "x").write_bytes(b"x")
    run = cache(Workspace(tmp_path), "gc", check=False)
    assert run.returncode == 2
    assert "no project here" in run.stderr
    assert (tmp_path / "cache" / "quarantine" / "x").exists()


def test_without_a_cache_the_verbs_say_so(tmp_path: Path) -> None:
    for verb in ("ls", "du", "verify", "gc"):
        run = cache(Workspace(tmp_path), verb, check=False)
        assert run.returncode == 5
        assert "there is no cache" in run.stderr


# -- to and from other machines ----------------------------------------------------------------


@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    """One with a key."""
    found = {"XDG_CONFIG_HOME": str(tmp_path / "user")}
    cache(Workspace(tmp_path), "keygen", environment=found)
    return found


def restores(there: Workspace, environment: Mapping[str, str]) -> int:
    run = there.npumake("build", environment=environment)
    return len(made(run, "recalled"))


@pytest.mark.slow
def test_a_signed_file_brings_a_project_to_a_machine_that_trusts_its_key(
    built: Workspace, user: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "artifacts.tar"
    cache(built, "export", str(file), "--sign", environment=user)
    there = lay_out(tmp_path / "there")
    stranger = {"XDG_CONFIG_HOME": str(tmp_path / "stranger")}
    run = cache(there, "import", str(file), environment=stranger, check=False)
    assert run.returncode == 5
    assert "a key that trust.yaml lacks" in run.stderr
    assert restores(there, stranger) == 0
    there = lay_out(tmp_path / "trusting")
    key = cache(Workspace(tmp_path), "keygen", "-o", str(tmp_path / "other.key")).stdout
    assert "ed25519:" in key
    cache(there, "import", str(file), environment=user)
    listed = there.npumake("list", environment=user).stdout
    assert listed.count("cached") == NODES
    assert restores(there, user) == NODES
    assert there.digests() == built.digests()
    # The signature stays with the record: a key that is revoked counts no longer.
    shutil.rmtree(there.project / "out")
    assert restores(there, stranger) == 0


@pytest.mark.slow
def test_an_unsigned_file_is_taken_by_who_asks_for_it(
    built: Workspace, user: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "artifacts.tar"
    cache(built, "export", str(file))
    there = lay_out(tmp_path / "there")
    run = cache(there, "import", str(file), environment=user, check=False)
    assert run.returncode == 5
    assert "import --unsigned" in run.stderr
    cache(there, "import", str(file), "--unsigned", environment=user)
    assert restores(there, user) == NODES
    assert there.digests() == built.digests()
    assert cache(there, "verify").returncode == 0


@pytest.mark.slow
def test_an_export_says_what_it_lacks(built: Workspace, tmp_path: Path) -> None:
    another_method(built)
    run = cache(built, "export", str(tmp_path / "artifacts.tar"))
    assert f"note: {BEHIND_METHOD} are not in the cache" in run.stdout
    shutil.rmtree(built.root / "cache")
    shutil.rmtree(built.project / "out")
    run = cache(built, "export", str(tmp_path / "none.tar"), check=False)
    assert run.returncode == 5
    assert not (tmp_path / "none.tar").exists()
    run = cache(built, "export", str(tmp_path / "none.tar"), "--sign", check=False,
                environment={"XDG_CONFIG_HOME": str(tmp_path / "nobody")})  # fmt: skip
    assert run.returncode == 2
    assert "npumake cache keygen" in run.stderr


@pytest.mark.slow
def test_a_pull_fetches_all_that_a_build_needs(
    built: Workspace, user: dict[str, str], tmp_path: Path
) -> None:
    with faulty() as server:
        environment = {**user, "NPUMAKE_CACHE_REMOTE": server.url}
        cache(built, "push", "--all", environment=environment)
        there = lay_out(tmp_path / "there")
        run = cache(there, "pull", environment=environment)
        assert "0 are not there" in run.stdout
        asked = len(server.seen)
        assert restores(there, {**user, "NPUMAKE_CACHE_REMOTE": ""}) == NODES
        assert len(server.seen) == asked
        assert "0 fetched" in cache(there, "pull", environment=environment).stdout
        server.blobs.clear()
        empty = lay_out(tmp_path / "empty")
        run = cache(empty, "pull", environment=environment)
        assert f"{NODES} are not there" in run.stdout
        server.fault = "answers 500"
        assert cache(empty, "pull", environment=environment, check=False).returncode == 5
    assert cache(empty, "pull", check=False).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "verb", [("build",), ("list",), ("why",), ("cache", "ls"), ("cache", "gc")]
)
def test_current_projects_with_a_remote_ask_nothing_of_it(
    built: Workspace, user: dict[str, str], tmp_path: Path, verb: tuple[str, ...]
) -> None:
    here = copied(built, tmp_path / "w2")
    shutil.copytree(here.project, here.root / "projects" / "other", symlinks=True)
    here.npumake("build")
    with faulty() as server:
        here.root.joinpath("npumake.yaml").write_text(f"cache: {{remote: {server.url}}}\n")
        environment = {k: v for k, v in user.items()}
        unset = {
            name: value for name, value in os.environ.items() if name != "NPUMAKE_CACHE_REMOTE"
        }
        subprocess.run(
            ["bash", "-c", f"{_npumake()} {' '.join(verb)}"],
            cwd=here.root, env={**unset, **environment}, capture_output=True, check=True,
        )  # fmt: skip
        assert server.seen == []
