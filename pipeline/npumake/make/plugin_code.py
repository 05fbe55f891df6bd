"""The code of plugins that a build depends on, for the keys.

The source of a plugin counts in full, like our own: distribution, version, and the digest of every
file of the package. A node without a plugin reads no metadata of installed packages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from npumake import digest
from npumake.cache.signature import FileDigests
from npumake.digest import Json
from npumake.make.node import Node
from npumake.plugins import DIALECTS, FRONTENDS, PASSES, TARGETS, Plugin, plugin
from npumake.targets import OWN_TARGETS

if TYPE_CHECKING:  # it parses YAML, which a build with nothing to do never loads
    from npumake.project.reader import Project

# Of npumake.frontends, which loads all readers. A test holds the two together.
OWN_SUFFIXES = frozenset({".onnx", ".pb", ".prototxt", ".tflite"})


def plugin_tools(node: Node, models: Iterable[str], files: FileDigests) -> Mapping[str, str]:
    """The version and digest of each plugin that `node` uses, by distribution. `models` are the
    names of its model files. Raises ProjectError."""
    return {
        f"plugin {plugin.distribution}": f"{plugin.version} {_digest(plugin, files)}"
        for plugin in _plugins_of(node, models)
    }


def plugin_files(project: Project, own: Mapping[str, Iterable[str]]) -> tuple[Path, ...]:
    """Every file of the plugins whose additions `project` names, except our `own` names, by group.

    Raises ProjectError.
    """
    variants = (project, *project.variants)
    names = {
        TARGETS: {name for variant in variants for name in variant.targets},
        DIALECTS: {project.vendor_document["dialect"]} if project.vendor_document else set(),
    }
    lookups = ((group, name) for group in names for name in names[group] - {*own[group]})
    added = (plugin(group, name) for group, name in sorted(lookups))
    return tuple(sorted({file for entry in added if entry for file in entry.files}))


def _plugins_of(node: Node, models: Iterable[str]) -> Iterator[Plugin]:
    """The readers of its model files, and the passes of its chip if that is not ours."""
    suffixes = {PurePath(name).suffix.lower() for name in models} - OWN_SUFFIXES
    readers = suffixes if node.stage == "original_float" else ()
    lookups = [(FRONTENDS, suffix.removeprefix(".")) for suffix in sorted(readers)]
    if node.target is not None and node.target not in OWN_TARGETS:
        lookups.append((PASSES, node.target))
    for group, name in lookups:
        if added := plugin(group, name):
            yield added


def _digest(added: Plugin, files: FileDigests) -> str:
    root = added.package.parent
    digests: Json = {file.relative_to(root).as_posix(): files.of(file) for file in added.files}
    return digest.of_document(digests)
