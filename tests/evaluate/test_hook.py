"""A metric of the project's own: one number, or one error that says what came instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from npumake import digest
from npumake.errors import StageError
from npumake.evaluate.hook import ROUTE, Summed, hooked
from npumake.project.files import SourceFile


def summed(folder: Path, returned: str) -> Summed:
    path = folder / "metrics.py"
    path.write_text(f"def right(answers):\n    return {returned}\n")
    file = SourceFile(path.name, str(path), digest.of_file(path))
    name, found = hooked("metrics.py:right", {ROUTE: (file,)})
    assert name == "right"
    return found


def test_its_number_is_told_by_its_name(tmp_path):
    assert summed(tmp_path, "sum(answers)")([1, 2, 4]) == {"right": 7.0}


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        ("None", "returns None"),
        ("'a few'", "returns 'a few'"),
        ("[1, 2]", r"returns \[1, 2\]"),
        ("10 ** 400", "returns 1000"),
        ("float('nan')", "is nan"),
        ("1 / 0", "division by zero"),
    ],
)
def test_what_is_no_number_is_one_error(returned, what, tmp_path):
    with pytest.raises(StageError, match=f"the metric `right`.* {what}") as raised:
        summed(tmp_path, returned)([])
    assert "metrics.py" in str(raised.value.where)
