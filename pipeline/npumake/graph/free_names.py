"""Names that are not in use, one for each of many equal ones."""

from __future__ import annotations

Suffixes = dict[str, int]  # by name in use: the next number to try


def free_name(name: str, suffixes: Suffixes) -> str:
    """`name`, with a number appended if it is in use; reserves the result.

    A thousand equal names take a thousand steps.
    """
    free = name
    while free in suffixes:
        free = f"{name}_{suffixes[name]}"
        suffixes[name] += 1
    suffixes[free] = 1
    return free
