"""The shared models: how each is fed is guessed right, or marked as not sure."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from npumake.errors import GraphError
from workspaces import REPO, few, shared_data

SMALL = ("cifar10", "vww", "kws_tiny", "caffe_mtcnn", "ad01", "yolov5tiny")  # CI has time for


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("guesses", REPO / "benchmarks" / "guesses.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["guesses"] = module
    spec.loader.exec_module(module)
    return module


GUESSES = benchmark()
FILES = {
    file.stem: file
    for file in sorted((shared_data() / "models").rglob("*"))
    if file.stem in GUESSES.TRUTHS and file.suffix != ".caffemodel"
}


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="shared/data is not here")
@pytest.mark.parametrize("name", few(FILES, lambda name: any(each in name for each in SMALL)))
def test_a_guess_is_right_or_not_sure(name: str, tmp_path: Path) -> None:
    GUESSES.write_digits(tmp_path)
    try:
        guessed = GUESSES.guess(FILES[name], GUESSES.pictures_for(FILES[name], tmp_path))
    except GraphError as error:
        pytest.skip(error.what)
    assert GUESSES.is_right(guessed, GUESSES.TRUTHS[name]) or guessed.doubts
