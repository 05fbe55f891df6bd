"""Compares two artifacts, or two builds, by their facts (npumake.report.facts).

A build is a folder; files are paired by name. Scales, ranges, sizes and latencies are compared as
after / before - 1, other numbers as after - before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from npumake.digest import Json
from npumake.errors import ProjectError
from npumake.report.facts import CONTENT, Facts, Section, facts

MAX_FILES = 10_000
RATIOS = ("scales", "ranges", "size", "latency")
DERIVED = ("report.html", "findings.")  # derived from the other artifacts


@dataclass(frozen=True)
class FactChange:
    """A changed name in a section: `before` is None if added, `after` None if removed."""

    name: str
    before: Json
    after: Json

    @property
    def is_number(self) -> bool:
        pair = (self.before, self.after)
        return all(isinstance(x, int | float) and not isinstance(x, bool) for x in pair)

    @property
    def difference(self) -> float | None:
        """after - before, for numbers."""
        return float(self.after - self.before) if self.is_number else None

    @property
    def drift(self) -> float | None:
        """after / before - 1, for numbers; None if `before` is 0."""
        return self.after / self.before - 1 if self.is_number and self.before else None

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True)
class FileDifference:
    """The changes of one pair of files by section. `only` is "before" or "after" for a file that
    one side lacks."""

    file: str
    sections: Mapping[str, tuple[FactChange, ...]]
    only: str | None = None

    def document(self) -> Json:
        sections = {
            name: [
                {
                    "name": change.name,
                    "kind": change.kind,
                    "before": change.before,
                    "after": change.after,
                }
                | ({"drift": change.drift} if name in RATIOS else {"difference": change.difference})
                for change in changes
            ]
            for name, changes in self.sections.items()
        }
        return {"file": self.file, "only": self.only, "sections": sections}


def differences(before: Path, after: Path) -> tuple[FileDifference, ...]:
    """The differences of two files, or of two folders' files by name; equal files are left out.
    Raises PipelineError."""
    for path in (before, after):
        if not path.exists():
            raise ProjectError("no such file or folder", str(path))
    if before.is_dir() != after.is_dir():
        message = "a folder and a file cannot be compared"
        raise ProjectError(message, f"{before} {after}", "give two files or two folders")
    if not before.is_dir():
        changes = of_facts(facts(before), facts(after))
        return (FileDifference(after.name, changes),) if changes else ()
    return tuple(_of_folders(before, after))


def _of_folders(before: Path, after: Path) -> Iterator[FileDifference]:
    old, new = _files(before), _files(after)
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            yield FileDifference(name, {}, "after" if name not in old else "before")
        elif changes := of_facts(facts(old[name]), facts(new[name])):
            yield FileDifference(name, changes)


def _files(folder: Path) -> dict[str, Path]:
    """The artifacts by their path in the folder. Raises ProjectError for more than MAX_FILES."""
    files: dict[str, Path] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in name.split("/"))
        if hidden or path.name.startswith(DERIVED) or path.is_symlink() or not path.is_file():
            continue
        files[name] = path
        if len(files) > MAX_FILES:
            raise ProjectError(f"more than {MAX_FILES} files", str(folder), "give an out/ folder")
    return files


def of_facts(before: Facts, after: Facts) -> dict[str, tuple[FactChange, ...]]:
    """The sections that differ, largest changes first. The content digest is included only if
    nothing else differs."""
    names = dict.fromkeys((*before, *after))
    changes_by_section = {
        name: _changes(name, before.get(name, {}), after.get(name, {})) for name in names
    }
    differing = {name: changes for name, changes in changes_by_section.items() if changes}
    without_content = {name: changes for name, changes in differing.items() if name != CONTENT}
    return without_content or differing


def _changes(section: str, before: Section, after: Section) -> tuple[FactChange, ...]:
    def moved(change: FactChange) -> float:
        return -abs((change.drift if section in RATIOS else change.difference) or 0.0)

    names = dict.fromkeys((*before, *after))
    changes = [FactChange(name, before.get(name), after.get(name)) for name in names]
    return tuple(sorted((entry for entry in changes if entry.before != entry.after), key=moved))
