"""The dialects a project may speak: one vendor's tool each, by the tool's name."""

from pipeline.project.vendor import Dialect
from pipeline.targets.drobotics.dialect import HB_MAPPER
from pipeline.targets.edgefirst.dialect import ARA2
from pipeline.targets.horizon.dialect import HB_COMPILE

DIALECTS: dict[str, Dialect] = {"hb_mapper": HB_MAPPER, "hb_compile": HB_COMPILE, "ara2": ARA2}
