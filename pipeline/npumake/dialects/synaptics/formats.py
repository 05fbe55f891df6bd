"""The format strings of a metafile, by the name of the input or output they are attached to.

A format tells the code around the model what a tensor holds; nothing is computed by it here, but
for the colours of an input and the proportions of its pictures, which `dialect.py` reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from npumake.dialects.synaptics.keys import InputEntry, OutputEntry
from npumake.dialects.synaptics.rules import typed
from npumake.project.document import Document

ANCHORS = "${ANCHORS}"


def formats(
    document: Document, inputs: Sequence[str], outputs: Sequence[str], anchors: str = "[]"
) -> dict[str, str]:
    """By name; entries without one, or that name a layer, are in the order of the model. `anchors`
    is what ${ANCHORS} stands for. Raises ProjectError for what is no metafile."""
    said = typed(document).said
    sides: tuple[tuple[Sequence[str], Sequence[InputEntry | OutputEntry | None], str], ...] = (
        (inputs, said.inputs, said.input_format.lower()),
        (outputs, said.outputs, said.output_format.lower()),
    )
    found: dict[str, str] = {}
    for names, entries, default in sides:
        found |= dict.fromkeys(names, default)
        for index, entry in enumerate(entries):
            own = entry.name if entry is not None else None
            in_order = names[index] if index < len(names) else ""
            name = own if own in names else in_order
            if entry is not None and entry.format is not None and name:
                found[name] = entry.format
    return {name: text.replace(ANCHORS, anchors) for name, text in found.items() if text}
