"""`doit` builds every project below projects/; `doit digits` builds one."""

from pipeline.cli.dodo import doit_config, task_npumake

DOIT_CONFIG = doit_config()

__all__ = ["DOIT_CONFIG", "task_npumake"]
