"""TOOLS: the closed tools, by the `vendor` of a target."""

from dataclasses import replace

from npumake.dialects.drobotics.handover import HB_MAPPER
from npumake.dialects.edgefirst.handover import ARA2
from npumake.dialects.handover import ClosedTool, HandoverDocument, HandoverRequest
from npumake.dialects.horizon.handover import HB_COMPILE
from npumake.dialects.overridden_keys import project_overrides
from npumake.dialects.synaptics.handover import SYNAP

TOOLS: dict[str, ClosedTool] = {
    "D-Robotics": HB_MAPPER,
    "EdgeFirst": ARA2,
    "Horizon": HB_COMPILE,
    "Synaptics": SYNAP,
}


def complete_document(tool: ClosedTool, request: HandoverRequest) -> HandoverDocument:
    """The tool's document with all its omissions. Raises ProjectError."""
    document = tool.render(request)
    return replace(document, omissions=(*document.omissions, *project_overrides(tool, request)))
