"""The dialects a project may speak: one vendor's tool each, by the tool's name."""

from npumake.late import when_used
from npumake.project.vendor import Dialects

with when_used(
    "npumake.dialects.drobotics.dialect",
    "npumake.dialects.edgefirst.dialect",
    "npumake.dialects.horizon.dialect",
    "npumake.dialects.synaptics.dialect",
):
    from npumake.dialects.drobotics import dialect as drobotics
    from npumake.dialects.edgefirst import dialect as edgefirst
    from npumake.dialects.horizon import dialect as horizon
    from npumake.dialects.synaptics import dialect as synaptics

DIALECTS: Dialects = {
    "ara2": lambda: edgefirst.ARA2,
    "hb_compile": lambda: horizon.HB_COMPILE,
    "hb_mapper": lambda: drobotics.HB_MAPPER,
    "synap": lambda: synaptics.SYNAP,
}
