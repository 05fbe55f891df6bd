"""Keys of project.yaml that override a vendor's document.

The document is handed over unchanged, so each override is listed as an omission.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from npumake import digest
from npumake.dialects.handover import ClosedTool, HandoverRequest
from npumake.dialects.table import DIALECTS
from npumake.project.document import parse_document
from npumake.project.reader import sections_of
from npumake.project.sections import Sections

SECTIONS = ("inputs", "calibration", "quantization", "compile", "security")
NO_MODEL = {"model": {"path": "model.onnx"}}


def project_overrides(tool: ClosedTool, request: HandoverRequest) -> Iterator[str]:
    """One line per overridden key; none for a native project."""
    if request.vendor_document is None:
        return
    translated = _sections(tool, request)
    for name in SECTIONS:
        project_value, vendor_value = getattr(request.sections, name), getattr(translated, name)
        for key in _different_keys(project_value, vendor_value):
            yield f"{name}.{key}, which the project has beside {tool.config}"


def _sections(tool: ClosedTool, request: HandoverRequest) -> Sections:
    """The sections that the vendor's document defines on its own."""
    document = parse_document(digest.canonical(request.vendor_document), tool.config)
    project = {**NO_MODEL, "targets": [request.target.name]}
    native = DIALECTS[tool.dialect]().translate(document, "", project).data
    compile = native.get("compile", {}) | {"prefix": request.sections.compile.prefix}
    whole = {**native, **project, "compile": compile}
    return sections_of(parse_document(digest.canonical(whole), tool.config))


def _different_keys(project: Any, vendor: Any) -> list[str]:
    """The keys of a section whose values differ."""
    if isinstance(project, dict):
        names = sorted({*project, *vendor})
        return [name for name in names if project.get(name) != vendor.get(name)]
    return [
        field.name
        for field in fields(project)
        if field.name != "optional" and getattr(project, field.name) != getattr(vendor, field.name)
    ]
