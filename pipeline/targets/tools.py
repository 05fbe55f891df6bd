"""TOOLS: the closed tool of each vendor that has one, by the vendor's name in its targets."""

from dataclasses import replace

from pipeline.targets.beside import stated_beside
from pipeline.targets.drobotics.handover import HB_MAPPER
from pipeline.targets.edgefirst.handover import ARA2
from pipeline.targets.handover import Asked, Handed, Tool
from pipeline.targets.horizon.handover import HB_COMPILE
from pipeline.targets.synaptics.handover import SYNAP

TOOLS: dict[str, Tool] = {
    "D-Robotics": HB_MAPPER,
    "EdgeFirst": ARA2,
    "Horizon": HB_COMPILE,
    "Synaptics": SYNAP,
}


def handed(tool: Tool, asked: Asked) -> Handed:
    """The tool's document, and all that it does not say. Raises ProjectError."""
    found = tool.written(asked)
    return replace(found, left_out=(*found.left_out, *stated_beside(tool, asked)))
