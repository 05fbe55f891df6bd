"""Names: classes are unique, words of a sentence name no value, a constant says what it bounds."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from syntax import syntax_of

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pipeline" / "npumake"

# Words that stand for a value's role in a sentence and say nothing about the value.
PRONOUNS = """
    both each everything here it mine nobody none nothing one ones ours same some that theirs them
    there they this those what whatever which who whose
"""
PARTICIPLES = """
    asked done drawn fed found given gone heard held kept known laid lost made met placed said seen
    shown taken told wanted wished
"""
COMPARATIVES = "least less more most"
VAGUE = frozenset(f"{PRONOUNS} {PARTICIPLES} {COMPARATIVES}".split())

# `file name` → why the name stays.
JSON_KEY = "a key of a JSON document"
ERROR_PART = "an error has a what, a where and a hint"
TFLITE_NAME = "the name of the TFLite schema"
EXCEPTIONS = {
    "cli/show.py what": ERROR_PART,
    "custom/blame.py what": ERROR_PART,
    "dialects/horizon/entry.py what": ERROR_PART,
    "dialects/synaptics/rules.py what": ERROR_PART,
    "dialects/vendor_yaml.py what": ERROR_PART,
    "errors.py what": ERROR_PART,
    "frontends/caffe/site.py what": ERROR_PART,
    "graph/domains.py what": ERROR_PART,
    "make/build.py what": ERROR_PART,
    "plugins.py what": ERROR_PART,
    "project/vendor.py what": ERROR_PART,
    "runtime/isolated.py what": ERROR_PART,
    "cache/unpacking.py what": ERROR_PART,
    "cache/verify.py what": ERROR_PART,
    "engine/checks.py what": ERROR_PART,
    "data/lint.py what": JSON_KEY,
    "debug/compared.py lost": JSON_KEY,
    "debug/diagnosis/local_error.py lost": JSON_KEY,
    "debug/diagnosis/rank_causes.py lost": JSON_KEY,
    "debug/preprocessing.py what": JSON_KEY,
    "evaluate/gates.py met": JSON_KEY,
    "evaluate/gates.py what": JSON_KEY,
    "evaluate/verdict.py lost": JSON_KEY,
    "evaluate/verdict.py met": JSON_KEY,
    "evaluate/verdict.py what": JSON_KEY,
    "quant/search/recipe.py kept": JSON_KEY,
    "quant/search/recipe.py what": JSON_KEY,
    "compilers/clamps.py NONE": TFLITE_NAME,
    "compilers/tflite_conv.py SAME": TFLITE_NAME,
    "frontends/tflite/images.py SAME": TFLITE_NAME,
}

# A constant of these words alone bounds nothing that a reader could name.
DIRECTIONS = """
    at bound by few first last least large largest limit long longest lowest many max maximum min
    minimum most near of once per short shortest small smallest than the
"""
SUPERLATIVES = "deepest largest least longest most shortest smallest"


def modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(root.rglob("*.py")):
        yield file.relative_to(root).as_posix(), syntax_of(file)


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of every variable, parameter, field, function, class and attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def vague_names(root: Path) -> list[str]:
    """`file:line: name` of each name that is one of VAGUE, without EXCEPTIONS."""
    return [
        f"{file}:{line}: {name}"
        for file, tree in modules(root)
        for line, name in bound_names(tree)
        if name.strip("_").lower() in VAGUE and f"{file} {name}" not in EXCEPTIONS
    ]


def boundless_constants(root: Path) -> list[str]:
    """`file:line: NAME` of each constant that says no unit or thing, or is a superlative."""
    found = []
    for file, tree in modules(root):
        for line, name in bound_names(ast.Module(tree.body, [])):
            words = name.strip("_").lower().split("_")
            if name.isupper() and (
                set(words) <= {*DIRECTIONS.split()} or words[0] in SUPERLATIVES.split()
            ):
                found.append(f"{file}:{line}: {name}")
    return found


def repeated_classes(root: Path) -> dict[str, list[str]]:
    """The files of each public class name that two modules define."""
    files: dict[str, list[str]] = defaultdict(list)
    for file, tree in modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(file)
    return {name: places for name, places in files.items() if len(places) > 1}


def test_public_class_names_are_unique():
    assert repeated_classes(PACKAGE) == {}


def test_no_name_is_a_pronoun_or_participle():
    assert vague_names(PACKAGE) == []


def test_every_exception_is_needed():
    names = {f"{file} {name}" for file, tree in modules(PACKAGE) for _, name in bound_names(tree)}
    assert set(EXCEPTIONS) - names == set()


def test_constants_say_what_they_bound():
    assert boundless_constants(PACKAGE) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("given = 1", "given"),
        ("def f(told): ...", "told"),
        ("def f():\n    for each in (): ...", "each"),
        ("class A:\n    said: str", "said"),
        ("def _found(): ...", "_found"),
        ("class A:\n    def f(self):\n        self.held = 0", "held"),
        ("x = [what for what in ()]", "what"),
    ],
)
def test_a_vague_name_is_reported_wherever_it_is_bound(tmp_path: Path, text: str, name: str):
    (tmp_path / "room.py").write_text(text)
    assert [line.rpartition(": ")[2] for line in vague_names(tmp_path)] == [name]


@pytest.mark.parametrize("name", ["MOST", "AT_ONCE", "LAST", "_MAX", "LONGEST", "MOST_TURNS"])
def test_a_constant_without_a_thing_is_reported(tmp_path: Path, name: str):
    (tmp_path / "room.py").write_text(f"{name} = 3")
    assert boundless_constants(tmp_path) == [f"room.py:1: {name}"]


@pytest.mark.parametrize("name", ["MAX_LOOP_ITERATIONS", "FIRST_LAYER", "MIN_SAMPLES", "Most"])
def test_a_constant_with_a_thing_passes(tmp_path: Path, name: str):
    (tmp_path / "room.py").write_text(f"{name}_ = 3" if name == "Most" else f"{name} = 3")
    assert boundless_constants(tmp_path) == []


def test_a_class_of_two_modules_is_reported(tmp_path: Path):
    for name in ("one.py", "other.py"):
        (tmp_path / name).write_text("class Layer: ...")
    assert repeated_classes(tmp_path) == {"Layer": ["one.py", "other.py"]}
