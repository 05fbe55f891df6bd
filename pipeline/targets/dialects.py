"""The dialects a project may speak: one vendor's tool each, by the tool's name."""

from pipeline.project.vendor import Dialect
from pipeline.targets.drobotics.dialect import HB_MAPPER
from pipeline.targets.edgefirst.dialect import ARA2
from pipeline.targets.horizon.dialect import HB_COMPILE
from pipeline.targets.synaptics.dialect import SYNAP

DIALECTS: dict[str, Dialect] = {
    "ara2": ARA2,
    "hb_compile": HB_COMPILE,
    "hb_mapper": HB_MAPPER,
    "synap": SYNAP,
}
