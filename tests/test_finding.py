"""A word of the field leads to its module: what a reader types into grep finds the room first."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from syntax import syntax_of

PACKAGE = Path(__file__).parents[1] / "pipeline" / "npumake"

# What a reader looks for → the module that does it.
MODULE_OF = {
    "smoothquant": "quant/correction/smoothquant.py",
    "SmoothQuant": "quant/correction/smoothquant.py",
    "minmax_observer": "quant/calibration/minmax_observer.py",
    "min/max observer": "quant/calibration/minmax_observer.py",
    "bias_correction": "quant/correction/bias_correction.py",
    "bias correction": "quant/correction/bias_correction.py",
    "tflite_conv": "compilers/tflite_conv.py",
    ".tflite Conv": "compilers/tflite_conv.py",
    "remove_node_type": "dialects/openexplorer/node_removal.py",
    "histogram observer": "quant/calibration/histogram_observer.py",
    "cross-layer equalization": "quant/correction/cross_layer_equalization.py",
    "adaptive rounding": "quant/correction/adaptive_rounding.py",
    "weight clipping": "quant/correction/weight_clipping.py",
    "set_node_data_type": "dialects/openexplorer/node_requests.py",
}


def words(text: str) -> str:
    """The letters and digits of a text: bias_correction and Bias correction are one word."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def signs(tree: ast.Module, file: str) -> Iterator[str]:
    """What names a module, the strongest first: its file, its docstring, then its definitions."""
    yield Path(file).stem
    docstring = ast.get_docstring(tree) or ""
    yield docstring.partition("\n")[0]
    yield docstring
    named = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    yield " ".join(node.name for node in named)


@cache
def words_of_signs(path: Path, file: str) -> tuple[str, ...]:
    tree = syntax_of(path)
    return tuple(words(text) for text in signs(tree, file))


def found(root: Path, term: str) -> list[str]:
    """The modules with the strongest sign of the term."""
    hits: dict[int, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        signed = enumerate(words_of_signs(path, file))
        matches = (rank for rank, text in signed if words(term) in text)
        if (rank := next(matches, None)) is not None:
            hits.setdefault(rank, []).append(file)
    return hits[min(hits)] if hits else []


@pytest.mark.parametrize("term", MODULE_OF)
def test_the_word_of_the_field_finds_its_module_first(term: str):
    assert found(PACKAGE, term) == [MODULE_OF[term]]


def test_a_name_beats_a_docstring_and_a_docstring_a_definition(tmp_path: Path):
    (tmp_path / "a.py").write_text("def min_max(): ...")
    assert found(tmp_path, "min/max") == ["a.py"]
    (tmp_path / "b.py").write_text('"""The min/max of a tensor."""')
    assert found(tmp_path, "min/max") == ["b.py"]
    (tmp_path / "min_max.py").write_text("")
    assert found(tmp_path, "min/max") == ["min_max.py"]
    assert found(tmp_path, "softmax") == []
