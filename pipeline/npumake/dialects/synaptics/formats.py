"""The format strings of a metafile, by input and output name.

A format describes the content of a tensor to the application. Only `dialect.py` uses a part of it:
the channel order of an input, and whether its images keep their proportions.
"""

from __future__ import annotations

from collections.abc import Sequence

from npumake.dialects.synaptics.keys import InputEntry, OutputEntry
from npumake.dialects.synaptics.rules import typed_metafile
from npumake.project.document import Document

ANCHORS = "${ANCHORS}"


def formats(
    document: Document, inputs: Sequence[str], outputs: Sequence[str], anchors: str = "[]"
) -> dict[str, str]:
    """The formats by name. Entries without a name, or with the name of a layer, follow the order of
    the model. `anchors` replaces ${ANCHORS}. Raises ProjectError for an invalid metafile."""
    metafile = typed_metafile(document).metafile
    sides: tuple[tuple[Sequence[str], Sequence[InputEntry | OutputEntry | None], str], ...] = (
        (inputs, metafile.inputs, metafile.input_format.lower()),
        (outputs, metafile.outputs, metafile.output_format.lower()),
    )
    by_name: dict[str, str] = {}
    for names, entries, default in sides:
        by_name |= dict.fromkeys(names, default)
        for index, entry in enumerate(entries):
            own_name = entry.name if entry is not None else None
            in_order = names[index] if index < len(names) else ""
            name = own_name if own_name in names else in_order
            if entry is not None and entry.format is not None and name:
                by_name[name] = entry.format
    return {name: text.replace(ANCHORS, anchors) for name, text in by_name.items() if text}
