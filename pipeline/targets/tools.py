"""TOOLS: the closed tool of each vendor that has one, by the vendor's name in its targets."""

from pipeline.targets.drobotics.handover import HB_MAPPER
from pipeline.targets.edgefirst.handover import ARA2
from pipeline.targets.handover import Tool
from pipeline.targets.horizon.handover import HB_COMPILE
from pipeline.targets.synaptics.handover import SYNAP

TOOLS: dict[str, Tool] = {
    "D-Robotics": HB_MAPPER,
    "EdgeFirst": ARA2,
    "Horizon": HB_COMPILE,
    "Synaptics": SYNAP,
}
