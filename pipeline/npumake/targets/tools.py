"""TOOLS: the closed tool of each vendor that has one, by the vendor's name in its targets."""

from dataclasses import replace

from npumake.targets.beside import stated_beside
from npumake.targets.drobotics.handover import HB_MAPPER
from npumake.targets.edgefirst.handover import ARA2
from npumake.targets.handover import Handed, HandoverRequest, Tool
from npumake.targets.horizon.handover import HB_COMPILE
from npumake.targets.synaptics.handover import SYNAP

TOOLS: dict[str, Tool] = {
    "D-Robotics": HB_MAPPER,
    "EdgeFirst": ARA2,
    "Horizon": HB_COMPILE,
    "Synaptics": SYNAP,
}


def handed(tool: Tool, asked: HandoverRequest) -> Handed:
    """The tool's document, and all that it does not say. Raises ProjectError."""
    found = tool.written(asked)
    return replace(found, left_out=(*found.left_out, *stated_beside(tool, asked)))
