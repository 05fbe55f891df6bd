"""Programs that a stage starts or loads without an import, and their versions, for the key.

Imports no numerical library: it runs in every build, even with nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath

from npumake.compilers.adapters.adapter import ADAPTERS, versions
from npumake.compilers.host import runs_here
from npumake.compilers.versions import tool_version
from npumake.make.node import Node

# By suffix: readers of a model file in their own process.
CONVERTERS = {".pb": ("tensorflow", "tensorflow-cpu", "tf2onnx")}

# By Target.backend: compilers in their own process.
COMPILERS = {
    "iree": ("iree-base-compiler", "iree-base-runtime", "tosa-converter-for-tflite"),
    "torq": ("tosa-converter-for-tflite", *ADAPTERS["torq"].distributions),
    "vela": ("ethos-u-vela",),
    **{name: ADAPTERS[name].distributions for name in ADAPTERS if name != "torq"},
}

# By Target.backend: runtimes of the compiled file, loaded without an import.
RUNTIMES = {
    "iree": ("iree-base-runtime",),
    "openvino": ADAPTERS["openvino"].distributions,
    "tflite": ("ai-edge-litert",),
    "vela": ("ai-edge-litert",),
}

# By stage.
PROGRAMS_BY_STAGE = {"compiled": COMPILERS, "compiled_check": RUNTIMES, "compiled_score": RUNTIMES}


def converters(files: Iterable[str]) -> dict[str, str]:
    """The versions of the installed programs that read files of these names."""
    named = {name for file in files for name in CONVERTERS.get(PurePath(file).suffix.lower(), ())}
    return {name: release for name in sorted(named) if (release := _version_if_any(name))}


def compilers(node: Node) -> dict[str, str]:
    """The versions of the installed programs that compile for a node's target, or run its file.
    Raises StageError for a tool without a version."""
    target = node.target_document
    if node.stage not in PROGRAMS_BY_STAGE:
        return {}
    if node.stage == "compiled" and "handover" in node.inputs:
        tool = target["tool"]
        releases = {tool["command"]: tool_version(tool["command"], tool["version"])}
    else:
        releases = _versions(
            target["backend"], PROGRAMS_BY_STAGE[node.stage].get(target["backend"], ())
        )
    if node.stage == "compiled_score":  # scored in this process, with any compiler
        names = RUNTIMES.get(target["backend"], ())
        releases |= {f"{name} here": _version_if_any(name) for name in names if name in releases}
    if node.stage != "compiled" and (processor := target.get("iree")):
        releases["processor"] = "here" if runs_here(**processor) else "elsewhere"
    return {name: version for name, version in releases.items() if version}


def _versions(backend: str, names: Iterable[str]) -> dict[str, str]:
    """The versions in this interpreter, and in that of an adapter."""
    distributions = ADAPTERS[backend].distributions if backend in ADAPTERS else ()
    releases = {name: _version_if_any(name) for name in names if name not in distributions}
    return releases | (versions(ADAPTERS[backend]) if {*distributions} & {*names} else {})


@cache
def _version_if_any(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
