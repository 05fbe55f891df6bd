"""Whether this machine's processor runs the native code that IREE builds.

Imports no numerical packages: it is in the key of every build.
"""

from __future__ import annotations

import platform
import sys
from functools import cache
from pathlib import Path

# By LLVM's processor name, the instruction sets that /proc/cpuinfo must list.
FLAGS = {"x86-64-v3": ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")}


def runs_here(triple: str, cpu: str) -> bool:
    """Whether this machine runs code for `cpu`; False for a processor that is not in FLAGS."""
    machine, _, system = triple.partition("-")
    if machine != platform.machine() or sys.platform not in system or cpu not in FLAGS:
        return False
    return set(FLAGS[cpu]) <= _flags()


@cache
def _flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.split() for line in lines if line.startswith("flags")), ()))
