"""What no import shows is in the key all the same: runtimes loaded late, programs in a process."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import npumake
from npumake.cache.signature import FileDigests
from npumake.make import programs
from npumake.make.code import SourceCode
from npumake.make.node import Node
from npumake.make.programs import COMPILERS, PROGRAMS_BY_STAGE, RUNTIMES, compilers
from npumake.stages import STAGES
from npumake.stages.stage import stage_named
from syntax import parsed

HOUSE = Path(npumake.__file__).parent
IMPORTERS = ("import_module", "__import__", "find_spec", "spec_from_file_location", "run_module")
ABOVE = ("cli",)
# What is imported by its name at run time, and the distribution that it is of: all there is.
LATE = {
    "ai_edge_litert.interpreter": "ai-edge-litert",
    "iree.runtime": "iree-base-runtime",
    "openvino": "openvino",
}
# Other dynamic imports: what finds a module for a plain import, a stage's own module, the standard
# library for the Python of a project, the question whether a converter is here, the keys of secure
# models, which no stage opens, the public face, and plugins, whose code is in the key
# (make/plugin_code.py).
OURS = {
    "__init__.py",
    "plugins.py",
    "extras.py",  # whether pip is here, for a hint
    "late.py",
    "stages/parameters.py",
    "custom/closed.py",
    "frontends/tensorflow/convert.py",
    "runtime/__init__.py",
}
# What starts a process: the module, and the stages whose table names what runs in it.
STARTERS = {
    "compilers/process.py": "compiled",
    "compilers/versions.py": "compiled",
    "compilers/vendor_tool.py": "compiled",
    "compilers/adapters/adapter.py": "compiled",
    "frontends/tensorflow/convert.py": "original_float",  # CONVERTERS, by the file's suffix
    "runtime/isolated.py": "compiled_check",
}


def calls(tree: ast.Module, names: tuple[str, ...]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in names:
                yield node


def modules(words: Iterable[str]) -> Iterator[tuple[str, ast.Module]]:
    """Those with one of the words."""
    for file in sorted(HOUSE.rglob("*.py")):
        name, text = file.relative_to(HOUSE).as_posix(), file.read_text(encoding="utf-8")
        is_script = not (file.parent / "__init__.py").exists()
        is_above = name.partition("/")[0] in ABOVE
        if not is_above and not is_script and any(word in text for word in words):
            yield name, parsed(text)


def late_imports() -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for name, tree in modules(IMPORTERS):
        for call in calls(tree, IMPORTERS):
            first = call.args[0] if call.args else None
            literal = first.value if isinstance(first, ast.Constant) else None
            found.setdefault(name, []).append(str(literal) if literal else None)
    return {name: names for name, names in found.items() if name not in OURS}


def test_every_dynamic_import_is_in_the_table():
    found = late_imports()
    assert {name for names in found.values() for name in names} == {*LATE}
    assert {*LATE.values()} <= {name for names in RUNTIMES.values() for name in names}


def test_importlib_is_used_where_it_is_known_and_nowhere_else():
    using = set()
    for name, tree in modules(("import",)):
        for node in ast.walk(tree):
            of = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            of += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(each in ("importlib", "importlib.util", "runpy", "imp") for each in of):
                using.add(name)
    assert using <= {*OURS, *late_imports()}


def test_every_stage_that_may_load_a_runtime_late_is_told_of(tmp_path):
    source = SourceCode(FileDigests(tmp_path / "files.json"), tmp_path / "sources.json")
    late = late_imports()
    # Of the interface behind a .vmfb, run nowhere.
    readers = {"comparison", "listings", "verdict", "findings"}
    for stage in STAGES:
        started = {name for names in PROGRAMS_BY_STAGE.get(stage, {}).values() for name in names}
        for module in source.closure(*stage_named(stage).modules).modules:
            file = module.partition(".")[2].replace(".", "/") + ".py"
            is_reader = stage in readers and file == "runtime/iree.py"
            loaded = {LATE[str(name)] for name in late.get(file, ())}
            assert is_reader or loaded <= started, (stage, module)


def test_every_module_that_starts_a_process_is_known():
    starts = ("Popen", "run_python", "run_supervised")
    starting = {name for name, tree in modules(starts) if any(calls(tree, starts))}
    starting |= {
        name
        for name, tree in modules(("finished",))
        for call in calls(tree, ("finished",))
        if isinstance(call.func, ast.Name) and name.startswith("compilers/")
    }
    starting |= {
        name
        for name, tree in modules(("subprocess",))
        for call in calls(tree, ("run", "check_output", "check_call"))
        if isinstance(call.func, ast.Attribute)
        and getattr(call.func.value, "id", "") == "subprocess"
    }
    tables = {"compilers/iree.py", "compilers/vela.py", "compilers/read_back.py"}  # of COMPILERS
    no_stage = {"lifetime/parent.py", "cache/remote/keys.py"}  # the latter: what prints a secret
    no_stage |= {"make/git.py", "make/base.py"}  # what changed, and a build of what was before
    assert starting - no_stage == {*STARTERS, *tables}


def node(stage: str, backend: str) -> Node:
    document = {"backend": backend, "tool": None}
    return Node(stage, stage, (), "", None, "chip", "out/x", {}, {}, document, (), {})


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A distribution of a version, as pip would leave it, in front of what is installed."""

    def installed(name: str, version: str) -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        for other in tmp_path.glob(f"{name.replace('-', '_')}-*"):
            (other / "METADATA").unlink()
            other.rmdir()
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        programs._version_if_any.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    yield installed
    programs._version_if_any.cache_clear()


HERE = [
    (stage, backend, name)
    for stage, table in PROGRAMS_BY_STAGE.items()
    for backend, names in table.items()
    for name in names
    if backend not in programs.ADAPTERS or name not in programs.ADAPTERS[backend].distributions
]


@pytest.mark.parametrize(("stage", "backend", "name"), HERE)
def test_another_version_of_what_a_stage_starts_is_another_key(stage, backend, name, install):
    seen = []
    for version in ("1.0", "2.0"):
        install(name, version)
        seen.append(compilers(node(stage, backend)))
    assert [tools[name] for tools in seen] == ["1.0", "2.0"]


def test_every_backend_that_is_compiled_elsewhere_is_in_the_table():
    from npumake.compilers.backends import BACKENDS

    inside = {"hybrid", "onnx", "tflite"}
    assert {*BACKENDS} - inside <= {*COMPILERS}
