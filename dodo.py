"""`doit` builds every project below projects/; `doit digits` builds one."""

from pipeline.cli.dodo import DOIT_CONFIG, task_npumake

__all__ = ["DOIT_CONFIG", "task_npumake"]
