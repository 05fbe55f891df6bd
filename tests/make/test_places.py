"""Where a project may lie: where nothing may be written, beside its copy, in a cache of others."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import npumake
from forks import run_python, user_environment
from syntax import syntax_of
from workspaces import Workspace, made

pytestmark = pytest.mark.slow
ROOT_S_RIGHTS = "-dac_override,-dac_read_search"
NOTE = "note: nothing is stored: "


def as_a_user() -> tuple[str, ...]:
    """What takes from root what no other user has: to write where it is forbidden."""
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root may write everywhere")
    return (setpriv, f"--bounding-set={ROOT_S_RIGHTS}", f"--inh-caps={ROOT_S_RIGHTS}")


def run(
    workspace: Workspace, *words: str, tool: str = "npumake.cli.main", **environment: str
) -> subprocess.CompletedProcess[str]:
    found = run_python(
        *("-m", tool, *words),
        folder=workspace.root,
        environment={**user_environment(), **environment},
        behind=as_a_user(),
    )
    assert "Traceback" not in found.stdout + found.stderr, found.stdout + found.stderr
    assert "Error:" not in found.stdout + found.stderr
    return found


def is_current(found: subprocess.CompletedProcess[str]) -> bool:
    """Whether there was nothing to do."""
    last = found.stdout.splitlines()[-1]
    return found.returncode == 0 and re.match(r"\d+ current in ", last) is not None


def folders(top: Path) -> list[Path]:
    return [top, *(path for path in top.rglob("*") if path.is_dir() and not path.is_symlink())]


def shut(top: Path, mode: int = 0o555) -> None:
    for folder in reversed(folders(top)):
        folder.chmod(mode)


@pytest.fixture
def opened_again(tmp_path: Path) -> Iterator[None]:
    """So that the test's folder can be removed."""
    yield
    subprocess.run(["chmod", "-R", "u+rwX", str(tmp_path)], check=True)


ELSEWHERE = ("inside", "elsewhere")


@pytest.mark.usefixtures("opened_again")
@pytest.mark.parametrize("cache", ELSEWHERE)
@pytest.mark.parametrize("tool", ["doit", "npumake.cli.main"])
def test_a_read_only_checkout_with_nothing_to_do_is_current(built, tmp_path, cache, tool):
    environment = {}
    if cache == "elsewhere":
        shutil.move(built.root / "cache", tmp_path / "cache")
        environment["NPUMAKE_CACHE"] = str(tmp_path / "cache")
    for forget in (False, True):
        if forget:
            (built.root / ".doit.db").unlink(missing_ok=True)
        shut(built.root)
        found = run(built, *(["build"] if "cli" in tool else []), tool=tool, **environment)
        assert found.returncode == 0, found.stdout + found.stderr
        assert is_current(found)
        built.root.chmod(0o755)
    for verb in (["list"], ["why", "digits:rdk-x5/compiled"], ["build", "-n", "2"]):
        assert run(built, *verb, **environment).returncode == 0


@pytest.mark.usefixtures("opened_again")
def test_a_read_only_checkout_with_something_to_do_is_one_error(built):
    (built.project / "out" / "digits.rdk-x5.hybrid").unlink()
    shut(built.root)
    found = run(built, "build")
    assert (found.returncode, found.stdout.count("error:")) == (5, 1), found.stdout
    assert "cannot write" in found.stdout
    assert "make its directory writable" in found.stdout


@pytest.mark.usefixtures("opened_again")
@pytest.mark.parametrize("mode", [0o555, 0o000], ids=["umask 022", "umask 077"])
@pytest.mark.parametrize("which", ["all", "below", "new"])
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_cache_of_another_user_fails_no_build(built, mode, which, workers):
    """`all` of it is another's, or what he made `below` it, or his empty folders are."""
    right = built.digests()
    cache = built.root / "cache"
    shutil.rmtree(built.project / "out")
    if which == "new":
        shutil.rmtree(cache)
        cache.mkdir()
        for name in ("blobs", "records", "scratch", "closures"):
            (cache / name).mkdir()
    for folder in reversed(folders(cache)):
        if which == "all" or folder != cache:
            folder.chmod(mode)
    found = run(built, "build", "-n", workers)
    assert found.returncode == 0, found.stdout + found.stderr
    assert built.digests() == right
    recalls = mode == 0o555 and which != "new"
    assert (made(found, "made") == set()) == recalls
    assert found.stdout.count(NOTE) == (0 if recalls and which == "below" else 1), found.stdout
    again = run(built, "build")
    assert is_current(again)
    assert again.stdout.count(NOTE) <= 1


@pytest.mark.usefixtures("opened_again")
def test_a_blob_of_another_user_that_is_damaged_is_made_again(built):
    right = built.digests()
    for blob in (built.root / "cache" / "blobs").rglob("*"):
        if blob.is_file():
            blob.chmod(0o644)
            blob.write_bytes(b"damage")
    shutil.rmtree(built.project / "out")
    shut(built.root / "cache")
    found = run(built, "build")
    assert (found.returncode, built.digests()) == (0, right), found.stdout


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077])
def test_every_umask_builds_and_what_is_shared_may_be_read(fresh, umask):
    shutil.rmtree(fresh.root / "cache")
    before = os.umask(umask)
    try:
        found = run(fresh, "build")
    finally:
        os.umask(before)
    assert (found.returncode, NOTE in found.stdout) == (0, False)
    for path in (fresh.root / "cache").rglob("*"):
        wanted = 0o444 if "blobs" in path.parts and path.is_file() else None
        mode = path.stat().st_mode & 0o777
        assert mode == wanted or mode == (0o777 if path.is_dir() else 0o666) & ~umask


def test_a_project_builds_beside_its_copy_and_under_another_name(built):
    right = built.digests()
    shutil.copytree(built.project, built.project.parent / "copy")
    found = run(built, "build")
    assert found.returncode == 0, found.stdout + found.stderr
    assert made(found, "made") == set()  # the same content: recalled under another name
    assert is_current(run(built, "build", "digits"))
    assert is_current(run(built, "build", "copy"))
    assert built.digests() == right
    moved = built.project.rename(built.root / "projects" / "moved")
    for place in (built.root, moved):
        where = Workspace(place, "moved")
        assert run(where, "build").returncode == 0
    assert is_current(run(built, "build"))
    whole = built.root.rename(built.root.parent / "other")
    assert is_current(run(Workspace(whole, "moved"), "build"))


# -- a locale that knows ASCII alone -------------------------------------------------------------

POSIX = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_locale_of_ascii_alone_builds_the_same(built):
    right = built.digests()
    assert is_current(run(built, "build", **POSIX))
    for folder in (built.project / "out", built.root / "cache"):
        shutil.rmtree(folder)
    found = run(built, "build", **POSIX)
    assert (found.returncode, built.digests()) == (0, right), found.stdout
    node = "digits:rdk-x5/compiled"
    for verb in (["list"], ["why", node], ["check", "projects/digits"], ["--help"], ["info", node]):
        run(built, *verb, **POSIX)


@pytest.mark.parametrize("key", ["model", "data"])
def test_a_name_that_a_locale_cannot_say_is_one_error(built, key):
    file = built.project / "project.yaml"
    old, new = {"model": ("model.onnx", "modèle.onnx"), "data": ("samples", "größe")}[key]
    (built.project / old).rename(built.project / new)
    file.write_text(file.read_text().replace(old, new), encoding="utf-8")
    found = run(built, "build", **POSIX)
    assert (found.returncode, found.stdout.count("error:")) == (2, 1), found.stdout
    assert "hint: this locale cannot encode the file name" in found.stdout
    assert run(built, "build", LC_ALL="C.UTF-8").returncode == 0


def test_no_locale_decides_how_a_file_is_read():
    house = Path(npumake.__file__).parent
    found = []
    for file in sorted(house.rglob("*.py")):
        for node in ast.walk(syntax_of(file)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                names = [keyword.arg for keyword in node.keywords]
                is_text = node.func.attr in ("read_text", "write_text") or "newline" in names
                of_metadata = file.name in (
                    "extras.py",
                    "version.py",
                )  # importlib.metadata's, always UTF-8
                if is_text and "encoding" not in names and not of_metadata:
                    found.append(f"{file.relative_to(house)}:{node.lineno}")
    assert found == []
