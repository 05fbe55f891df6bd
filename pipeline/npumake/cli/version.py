"""What `npumake --version` prints: the version, the commit, and the installed extras."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

NAME = "npumake"
PACKAGE = Path(__file__).parents[1]
COMMIT_FILE = "commit.txt"  # beside the package; a release writes it before it builds the wheel
HEX_DIGITS = 12  # of a commit, as they are shown
COMMIT = re.compile(r"[0-9a-f]{7,64}")


def version_lines() -> Iterator[str]:
    version = getattr(_installed(NAME), "version", "from sources")
    yield f"{NAME} {version} (commit {commit() or 'unknown'})"
    yield f"extras: {', '.join(installed_extras()) or 'none'}"


def commit(package: Path = PACKAGE) -> str:
    """The commit that `package` was taken from, `-dirty` if the checkout has changes; empty if
    nothing records it.

    A checkout is asked first, because its commit changes after an editable installation.
    """
    return _of_checkout(package) or _of_file(package) or _of_url()


def _of_checkout(package: Path) -> str:
    top = package.parents[1]
    if package.parent.name != "pipeline" or not (top / ".git").exists():
        return ""
    command = ["git", "-C", str(top), "describe", "--always", "--dirty", "--exclude=*"]
    command.append(f"--abbrev={HEX_DIGITS}")
    try:
        described = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or a checkout of another user
        return ""
    return described.stdout.strip()


def _of_file(package: Path) -> str:
    try:
        text = (package / COMMIT_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return text.strip()[:HEX_DIGITS] if COMMIT.fullmatch(text.strip()) else ""


def _of_url() -> str:
    """The commit of `pip install git+…`, which PEP 610 has in direct_url.json."""
    installed = _installed(NAME)
    text = installed.read_text("direct_url.json") if installed else None
    information = json.loads(text or "{}").get("vcs_info", {})
    return str(information.get("commit_id", ""))[:HEX_DIGITS]


def installed_extras() -> list[str]:
    """The extras of npumake with every distribution installed, in the version it needs."""
    installed = _installed(NAME)
    names = installed.metadata.get_all("Provides-Extra") if installed else None
    return sorted(extra for extra in names or () if _is_installed(NAME, extra))


def _is_installed(name: str, extra: str) -> bool:
    """Whether all that `extra` of a distribution adds is installed. Extras may name others."""
    installed = _installed(name)
    return installed is not None and all(map(_is_met, _added(installed, extra)))


def _added(installed: Distribution, extra: str) -> Iterator[Requirement]:
    """The requirements of `extra` that are for this platform."""
    for requirement in map(Requirement, installed.requires or ()):
        marker = requirement.marker
        if marker and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            yield requirement


def _is_met(requirement: Requirement) -> bool:
    installed = _installed(requirement.name)
    if installed is None or not requirement.specifier.contains(installed.version, prereleases=True):
        return False
    return all(_is_installed(requirement.name, extra) for extra in requirement.extras)


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None
