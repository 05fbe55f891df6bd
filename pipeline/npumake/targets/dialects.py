"""The dialects a project may speak: one vendor's tool each, by the tool's name."""

from npumake.late import when_used
from npumake.project.vendor import Dialects

with when_used(
    "npumake.targets.drobotics.dialect",
    "npumake.targets.edgefirst.dialect",
    "npumake.targets.horizon.dialect",
    "npumake.targets.synaptics.dialect",
):
    from npumake.targets.drobotics import dialect as drobotics
    from npumake.targets.edgefirst import dialect as edgefirst
    from npumake.targets.horizon import dialect as horizon
    from npumake.targets.synaptics import dialect as synaptics

DIALECTS: Dialects = {
    "ara2": lambda: edgefirst.ARA2,
    "hb_compile": lambda: horizon.HB_COMPILE,
    "hb_mapper": lambda: drobotics.HB_MAPPER,
    "synap": lambda: synaptics.SYNAP,
}
