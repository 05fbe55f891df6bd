"""The dialects a project may speak: one vendor's tool each, by the tool's name."""

from pipeline.late import when_used
from pipeline.project.vendor import Dialects

with when_used(
    "pipeline.targets.drobotics.dialect",
    "pipeline.targets.edgefirst.dialect",
    "pipeline.targets.horizon.dialect",
    "pipeline.targets.synaptics.dialect",
):
    from pipeline.targets.drobotics import dialect as drobotics
    from pipeline.targets.edgefirst import dialect as edgefirst
    from pipeline.targets.horizon import dialect as horizon
    from pipeline.targets.synaptics import dialect as synaptics

DIALECTS: Dialects = {
    "ara2": lambda: edgefirst.ARA2,
    "hb_compile": lambda: horizon.HB_COMPILE,
    "hb_mapper": lambda: drobotics.HB_MAPPER,
    "synap": lambda: synaptics.SYNAP,
}
