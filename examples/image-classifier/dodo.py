"""`doit` in this directory builds this project."""

from npumake.dodo import doit_config, task_npumake

DOIT_CONFIG = doit_config()

__all__ = ["DOIT_CONFIG", "task_npumake"]
