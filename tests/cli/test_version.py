"""npumake --version: the version, the commit, and the extras that are installed."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest

from npumake.cli import version
from npumake.cli.main import main

EXTRA = re.compile(r'extra == "(\w+)"')
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def package_in(root: Path) -> Path:
    package = root / "pipeline" / "npumake"
    package.mkdir(parents=True)
    return package


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def checkout_in(root: Path) -> Path:
    package = package_in(root)
    (package / "a.py").write_text("")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    git(root, "tag", "v1.0.0")
    return package


def test_the_version_has_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"npumake \S+ \(commit [0-9a-f]{12}(-dirty)?\)|.*unknown\)", first)
    assert first.split()[1] == distribution("npumake").version
    assert second.startswith("extras: ")


def test_a_checkout_tells_its_commit_even_where_a_tag_is(tmp_path: Path) -> None:
    package = checkout_in(tmp_path)
    commit = git(tmp_path, "rev-parse", "HEAD")[:12]
    assert version.commit(package) == commit
    (package / "a.py").write_text("x = 1\n")
    assert version.commit(package) == f"{commit}-dirty"


def test_a_checkout_is_asked_before_the_file_of_a_release(tmp_path: Path) -> None:
    package = checkout_in(tmp_path)
    (package / version.COMMIT_FILE).write_text(COMMIT)
    assert version.commit(package) != COMMIT[:12]


def test_a_release_tells_the_commit_that_it_was_built_from(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    (package / version.COMMIT_FILE).write_text(f"{COMMIT}\n")
    assert version.commit(package) == COMMIT[:12]


@pytest.mark.parametrize("content", [b"", b"\xff", b"\x1b[31mred", b"main", b"unknown\n"])
def test_a_file_without_a_commit_is_ignored(tmp_path: Path, content: bytes) -> None:
    package = package_in(tmp_path)
    (package / version.COMMIT_FILE).write_bytes(content)
    assert version.commit(package) == ""


def test_a_package_inside_of_another_repository_is_not_of_its_commit(tmp_path: Path) -> None:
    checkout_in(tmp_path)
    installed = tmp_path / "env" / "site-packages" / "npumake"
    installed.mkdir(parents=True)
    assert version.commit(installed) == ""


def install(folder: Path, name: str, requirements: list[str]) -> None:
    """The metadata of a distribution of version 1.0."""
    extras = {marker[1] for line in requirements if (marker := EXTRA.search(line))}
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    lines += [f"Requires-Dist: {line}" for line in requirements]
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("\n".join([*lines, ""]))


@pytest.mark.parametrize(
    ("extra", "requirements", "is_installed"),
    [
        ("a", {"npumake": ['absent-one; extra == "a"'], "absent-one": []}, True),
        ("a", {"npumake": ['absent-one; extra == "a"']}, False),
        ("a", {"npumake": ['absent-one>=2; extra == "a"'], "absent-one": []}, False),
        ("a", {"npumake": ['absent-one>=1; extra == "a"'], "absent-one": []}, True),
        ("a", {"npumake": ['absent-one; extra == "a" and sys_platform == "none"']}, True),
        ("a", {"npumake": ['npumake[b]; extra == "a"', 'absent-one; extra == "b"']}, False),
        (
            "a",
            {"npumake": ['npumake[b]; extra == "a"', 'absent-one; extra == "b"'], "absent-one": []},
            True,
        ),
        (
            "a",
            {
                "npumake": ['absent-one[x]; extra == "a"'],
                "absent-one": ['absent-two; extra == "x"'],
            },
            False,
        ),
        (
            "b",
            {"npumake": ['absent-one; extra == "a"', 'absent-two; extra == "b"'], "absent-two": []},
            True,
        ),
    ],
)
def test_an_extra_is_installed_if_all_that_it_adds_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    extra: str,
    requirements: dict[str, list[str]],
    is_installed: bool,
) -> None:
    for name, lines in requirements.items():
        install(tmp_path, name, lines)
    monkeypatch.syspath_prepend(tmp_path)
    assert (extra in version.installed_extras()) is is_installed
