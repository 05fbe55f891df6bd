"""The types of keys that name files. A module of its own, since every build needs these types but
only planning needs the sections."""

from __future__ import annotations

from typing import NewType

FilePath = NewType("FilePath", str)  # one file, relative to the project directory
FileGlob = NewType("FileGlob", str)  # many files, by a shell pattern; sorted by name
CodeGlob = NewType("CodeGlob", str)  # Python to run, inside the project directory only
ModuleGlob = NewType("ModuleGlob", str)  # Python that such code imports, named by its path there
Metric = NewType("Metric", str)  # a name, or `file.py:function`: Python to run, likewise
