"""Which modules import which, by another reading than the program's own: a regular expression."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

FROM = re.compile(r"^\s*from (npumake[\w.]*) import (\([^)]*\)|[^(#\n]*)", re.M)
FOR_TYPE_CHECKERS = re.compile(r"^if TYPE_CHECKING:.*\n(?:[ \t].*\n|\n)+", re.M)  # not executed
PLAIN = re.compile(r"^\s*import (npumake[\w.]*)", re.M)


def importers(package: Path, name: str) -> set[str]:
    """The stages' modules that import the module, or import one that does."""
    imports = _imports(package)
    found, waiting = {name}, [name]
    while waiting:
        reached = waiting.pop()
        for module, imported in imports.items():
            if reached in imported and module not in found:
                found.add(module)
                waiting.append(module)
    return {module for module in found if module.startswith("npumake.stages.")}


@cache
def _imports(package: Path) -> dict[str, set[str]]:
    texts = {}
    for file in package.rglob("*.py"):
        parts = file.relative_to(package.parent).with_suffix("").parts
        texts[".".join(parts).removesuffix(".__init__")] = file.read_text()
    return {name: _imported(text) & texts.keys() for name, text in texts.items()}


def _imported(text: str) -> set[str]:
    text = FOR_TYPE_CHECKERS.sub("", text)
    found = set(PLAIN.findall(text))
    for module, names in FROM.findall(text):
        found.add(module)
        parts = re.split(r"[,\n()]", names)
        found |= {f"{module}.{part.split(' as ')[0].strip()}" for part in parts}
    return found
