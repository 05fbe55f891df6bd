"""What this machine's processor runs of the native code that IREE makes.

Imports nothing that computes: it is in the key of every build.
"""

from __future__ import annotations

import platform
import sys
from functools import cache
from pathlib import Path

# By LLVM's name of a processor: what /proc/cpuinfo must list of its instructions.
FLAGS = {"x86-64-v3": ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")}


def runs_here(triple: str, cpu: str) -> bool:
    """Whether code for `cpu` can be run on this machine; of a processor not in FLAGS: no."""
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
