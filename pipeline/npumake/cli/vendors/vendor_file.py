"""VendorFile: the YAML file of hb_mapper or hb_compile, and its project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npumake.cli.vendors.log import config_text
from npumake.cli.vendors.project import (
    allowed_findings,
    copied_operators,
    relative_path,
    write_project,
)
from npumake.dialects.vendor_yaml import VendorKey, VendorYaml
from npumake.project.document import Document
from npumake.project.vendor import Dialect, repeat_notes


@dataclass(frozen=True)
class VendorFile:
    """The file at `path`, checked: `native` is its translation by `dialect`."""

    path: Path
    dialect: Dialect
    vendor: VendorYaml
    native: Document

    @property
    def working(self) -> Path:
        """working_dir, relative to the folder of the file."""
        return self.path.parent / self.vendor.text("model_parameters.working_dir")

    @property
    def prefix(self) -> str:
        return self.vendor.text("model_parameters.output_model_file_prefix")

    @property
    def folder(self) -> Path:
        """The folder of the project."""
        return self.working / self.prefix

    def write_project(self, dialect: str, allow: Sequence[str]) -> tuple[str, ...]:
        """Writes the project; returns the file and its notes as lines of a log. Raises
        ProjectError."""
        project = {
            "dialect": dialect,
            "config": relative_path(self.folder, self.path),
            **allowed_findings(self.native, allow),
            **copied_operators(self.native, self.path, self.folder),
        }
        write_project(self.folder, project)
        document = self.vendor.document
        notes = (*repeat_notes(document), *self.dialect.notes(document))
        lines = (f"note: {note.what} ({note.where})" for note in notes)
        return (config_text(document), *lines)


def read_vendor_file(path: Path, dialect: Dialect, keys: Mapping[str, VendorKey]) -> VendorFile:
    """The file, translated: its errors come before anything is written. Raises ProjectError."""
    document = dialect.read(path).document
    return VendorFile(
        path, dialect, VendorYaml(document, keys), dialect.translate(document, "", None)
    )
