"""`doit` builds every project below projects/ that takes seconds; `doit digits` builds one."""

from npumake.dodo import doit_config, task_npumake

# Its variants are compared in exact integers: half a minute.  doit shapes-detector
DOIT_CONFIG = doit_config(but=["shapes-detector"])

__all__ = ["DOIT_CONFIG", "task_npumake"]
