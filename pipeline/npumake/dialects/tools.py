"""TOOLS: the closed tool of each vendor that has one, by the vendor's name in its targets."""

from dataclasses import replace

from npumake.dialects.drobotics.handover import HB_MAPPER
from npumake.dialects.edgefirst.handover import ARA2
from npumake.dialects.handover import Handed, HandoverRequest, Tool
from npumake.dialects.horizon.handover import HB_COMPILE
from npumake.dialects.overridden_keys import stated_beside
from npumake.dialects.synaptics.handover import SYNAP

TOOLS: dict[str, Tool] = {
    "D-Robotics": HB_MAPPER,
    "EdgeFirst": ARA2,
    "Horizon": HB_COMPILE,
    "Synaptics": SYNAP,
}


def handed(tool: Tool, request: HandoverRequest) -> Handed:
    """The tool's document, and all that it does not say. Raises ProjectError."""
    document = tool.written(request)
    return replace(document, left_out=(*document.left_out, *stated_beside(tool, request)))
