"""What a project says beside a vendor's own document, which is handed over as it is.

Each key whose value is another than the document's translation has is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from npumake import digest
from npumake.dialects.handover import HandoverRequest, Tool
from npumake.dialects.table import DIALECTS
from npumake.project.document import parse_document
from npumake.project.reader import sections_of
from npumake.project.sections import Sections

SECTIONS = ("inputs", "calibration", "quantization", "compile", "security")
NO_MODEL = {"model": {"path": "model.onnx"}}


def stated_beside(tool: Tool, request: HandoverRequest) -> Iterator[str]:
    """A line for each key; none of a project in our own words."""
    if request.said is None:
        return
    translated = _sections(tool, request)
    for name in SECTIONS:
        ours, theirs = getattr(request.sections, name), getattr(translated, name)
        for key in _different(ours, theirs):
            yield f"{name}.{key}, which the project says beside {tool.config}"


def _sections(tool: Tool, request: HandoverRequest) -> Sections:
    """What the vendor's document says alone."""
    document = parse_document(digest.canonical(request.said), tool.config)
    beside = {**NO_MODEL, "targets": [request.target.name]}
    native = DIALECTS[tool.dialect]().translate(document, "", beside).data
    compile = native.get("compile", {}) | {"prefix": request.sections.compile.prefix}
    whole = {**native, **beside, "compile": compile}
    return sections_of(parse_document(digest.canonical(whole), tool.config))


def _different(ours: Any, theirs: Any) -> list[str]:
    """The keys of a section with unlike values."""
    if isinstance(ours, dict):
        names = sorted({*ours, *theirs})
        return [name for name in names if ours.get(name) != theirs.get(name)]
    return [
        field.name
        for field in fields(ours)
        if field.name != "optional" and getattr(ours, field.name) != getattr(theirs, field.name)
    ]
