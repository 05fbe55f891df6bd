"""`doit` in this directory builds this project."""

from pipeline.cli.dodo import DOIT_CONFIG, task_npumake

__all__ = ["DOIT_CONFIG", "task_npumake"]
