"""Python of a project runs what a key holds: declared files, NumPy and what Python brings."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from npumake import digest
from npumake.custom.operators import declared, operators_in
from npumake.errors import Place, ProjectError, StageError
from npumake.evaluate.hook import ROUTE, WITH, hooked
from npumake.project.files import SourceFile

OPERATOR = """\
from npumake.custom import op_implement_register
{imports}

@op_implement_register("Gain")
class Gain:
    def compute(self, x):
        {late}
        return {value}
"""


def operator(imports: str = "", value: str = "GAIN", late: str = "pass") -> bytes:
    return OPERATOR.format(imports=imports, value=value, late=late).encode()


def computed(files: dict[str, bytes]) -> object:
    found = operators_in(files).by_type["Gain"].implementation
    assert found is not None
    return found().compute(None)


@pytest.mark.parametrize(
    ("importer", "line", "value", "others"),
    [
        ("gain_op.py", "from gain import GAIN", "GAIN", {"gain.py": "GAIN = 2"}),
        ("gain_op.py", "from .gain import GAIN", "GAIN", {"gain.py": "GAIN = 2"}),
        ("gain_op.py", "from .gain import GAIN", "GAIN", {"ops/gain.py": "GAIN = 2"}),
        ("gain_op.py", "from ops.gain import GAIN", "GAIN", {"ops/gain.py": "GAIN = 2"}),
        ("gain_op.py", "from gain import GAIN", "GAIN", {"ops/gain.py": "GAIN = 2"}),
        ("gain_op.py", "import ops.gain", "ops.gain.GAIN", {"ops/gain.py": "GAIN = 2"}),
        ("gain_op.py", "import ops.gain as g", "g.GAIN", {"ops/gain.py": "GAIN = 2"}),
        ("gain_op.py", "from ops import gain", "gain.GAIN", {"ops/gain.py": "GAIN = 2"}),
        ("gain_op.py", "from ops import *", "GAIN", {"ops/__init__.py": "GAIN = 2"}),
        (
            "gain_op.py",
            "from lib.b import GAIN",
            "GAIN",
            {"lib/__init__.py": "ONE = 1", "lib/b.py": "from . import ONE\nGAIN = ONE + 1"},
        ),
        (
            "gain_op.py",
            "import lib.deep.b",
            "lib.deep.b.GAIN",
            {"lib/deep/b.py": "from ..c import GAIN", "lib/c.py": "GAIN = 2"},
        ),
        ("gain_op.py", "import a", "a.GAIN", {"a.py": "import b\nGAIN = 2", "b.py": "import a"}),
    ],
)
def test_a_declared_file_is_imported_as_python_would(importer, line, value, others):
    files = {importer: operator(line, value)} | {k: v.encode() for k, v in others.items()}
    assert computed(files) == 2
    late = {**files, importer: operator("", value, late=line)}
    if "*" not in line:
        assert computed(late) == 2  # also where the import stands in a function
        assert {*operators_in(late).by_type["Gain"].files} == {*late}  # and goes into the bundle


@pytest.mark.parametrize(
    "line",
    [
        "import json, math as m, os.path, collections.abc",
        "import numpy as np, numpy.linalg",
        "from numpy.lib.stride_tricks import sliding_window_view",
        "from __future__ import annotations",
        "from hmct.custom import op_registration",
        "import horizon_nn.custom.op_registration as r",
        "import npumake.custom as c",
    ],
)
def test_what_every_key_holds_is_imported(line):
    files = {"gain_op.py": f"{line}\n".encode() + operator(value="2")}
    assert computed(files) == 2


UNDECLARED = [
    *("import gain", "from gain import GAIN", "import numpy, gain", "from .gain import GAIN"),
    *("import cv2", "import scipy.special", "import onnx", "import yaml"),
    *("import npumake.quant", "from npumake.errors import Place", "from .. import gain"),
    *("import importlib", "from importlib import import_module", "import runpy", "import pkgutil"),
    *("__import__('gain')", "try:\n    import gain\nexcept ImportError:\n    GAIN = 1"),
    *("from lib import gain", "import lib.gain"),
]


@pytest.mark.parametrize("line", UNDECLARED)
@pytest.mark.parametrize("inside", [False, True])
def test_anything_else_is_one_error_at_its_line(line, inside):
    text = f"def f():\n    {line.replace(chr(10), chr(10) + '    ')}\n" if inside else f"\n{line}\n"
    files = {"gain_op.py": text.encode(), "lib/other.py": b""}
    with pytest.raises(ProjectError, match="which is not declared") as caught:
        operators_in(files)
    assert isinstance(caught.value.where, Place)
    row = 3 if line.startswith("try") else 2
    assert (caught.value.where.path, caught.value.where.line) == ("gain_op.py", row)
    assert caught.value.hint


def test_an_import_that_is_written_at_run_time_is_refused_too(tmp_path, monkeypatch):
    (tmp_path / "gain.py").write_text("GAIN = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    for line in ("exec('import gain')", "eval('__im' + 'port__(\"gain\")')"):
        with pytest.raises(StageError, match="imports `gain`, which is not declared"):
            operators_in({"gain_op.py": operator(line)})
        late = operators_in({"gain_op.py": operator(late=line)}).by_type["Gain"].implementation
        assert late is not None
        with pytest.raises(ImportError, match="not declared"):
            late().compute(None)
    assert "gain" not in sys.modules


def test_the_search_path_decides_nothing(tmp_path, monkeypatch):
    (tmp_path / "gain.py").write_text("GAIN = 3\n")
    (tmp_path / "numpy.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    files = {
        "gain_op.py": operator("from gain import GAIN\nimport numpy.fft"),
        "gain.py": b"GAIN=2",
    }
    assert computed(files) == 2


def test_a_file_that_hides_a_module_of_pythons_is_no_part_of_it(tmp_path, monkeypatch):
    (tmp_path / "colorsys.py").write_text("GAIN = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    try:
        with pytest.raises(StageError, match=r"colorsys\.py hides it"):
            operators_in({"gain_op.py": operator("import colorsys")})
    finally:
        sys.modules.pop("colorsys", None)


def test_a_declared_file_that_is_called_like_a_library_is_refused():
    for name in ("json", "numpy"):
        with pytest.raises(ProjectError, match="a declared file and a module of Python's"):
            operators_in({"gain_op.py": operator(f"import {name}"), f"{name}.py": b""})


def test_two_files_that_an_import_may_mean_are_refused():
    files = {"gain_op.py": operator("import gain"), "a/gain.py": b"", "b/gain.py": b""}
    with pytest.raises(ProjectError, match=r"may be a/gain or b/gain"):
        operators_in(files)
    with pytest.raises(ProjectError, match="are one module"):
        operators_in({"gain.py": b"", "gain/__init__.py": b""})


def test_two_projects_share_no_module_and_leave_none_behind():
    before = {*sys.modules}
    files = {"gain_op.py": operator("import gain", "gain.GAIN")}
    first = operators_in({**files, "gain.py": b"GAIN = 1"}).by_type["Gain"].implementation
    second = operators_in({**files, "gain.py": b"GAIN = 2"}).by_type["Gain"].implementation
    assert first is not None
    assert second is not None
    assert (first().compute(None), second().compute(None)) == (1, 2)
    assert {*sys.modules} - before == set()


def test_threads_that_import_late_see_whole_modules():
    helper = b"import time\ntime.sleep(0.01)\nGAIN = 2\n"
    files = {"gain_op.py": operator("", "gain.GAIN", late="import gain"), "gain.py": helper}
    found = operators_in({**files}).by_type["Gain"].implementation
    assert found is not None
    seen: list[object] = []
    threads = [threading.Thread(target=lambda: seen.append(found().compute(None))) for _ in "1234"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [2, 2, 2, 2]


def test_a_class_of_a_declared_file_finds_its_module():
    helper = b"""from __future__ import annotations
import dataclasses, typing
@dataclasses.dataclass
class Gains:
    one: typing.ClassVar[int] = 2
"""
    files = {"gain_op.py": operator("from gain import Gains", "Gains.one"), "gain.py": helper}
    assert computed(files) == 2


# -- in a project ------------------------------------------------------------------------------


def source(folder: Path, name: str, text: str = "", called: str = "") -> SourceFile:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return SourceFile(called or path.name, str(path), digest.of_file(path))


@pytest.mark.parametrize(
    ("line", "beside", "hint"),
    [
        ("import gain", "ops/gain.py", "ops/gain.py"),
        ("import gain", "gain.py", "gain.py"),
        ("from ops import gain", "ops/gain.py", "ops/gain.py"),
        ("from lib.gain import x", "lib/gain.py", "lib/gain.py"),
        ("import lib", "lib/__init__.py", "lib/__init__.py"),
        ("from .gain import x", "ops/gain.py", "ops/gain.py"),
    ],
)
def test_the_error_says_what_to_write_and_it_holds(tmp_path, line, beside, hint):
    (tmp_path / "project.yaml").write_text("")
    helper = source(tmp_path, beside, "x = 2\n", called=beside)
    ours = source(tmp_path, "ops/gain_op.py", operator(line, "2").decode())
    with pytest.raises(ProjectError) as caught:
        declared(["ops/*.py"], {"custom_operators.0": (ours,)})
    assert caught.value.hint.endswith(f"[{{files: ops/gain_op.py, with: [{hint}]}}]")
    sources = {"custom_operators.0.files": (ours,), "custom_operators.0.with.0": (helper,)}
    assert list(declared(["ops/*.py"], sources).by_type) == ["Gain"]
    metric = source(tmp_path, "ops/score.py", f"{line}\ndef score(answers):\n    return 1\n")
    with pytest.raises(ProjectError) as caught:
        hooked("ops/score.py:score", {ROUTE: (metric,)})
    assert caught.value.hint.endswith(f"with: [{hint}]}}")
    name, _ = hooked("ops/score.py:score", {ROUTE: (metric,), f"{WITH}.0": (helper,)})
    assert name == "score"


def test_a_file_of_both_keys_is_one_file(tmp_path):
    ours = source(tmp_path, "ops/gain_op.py", operator("from ops.gain import GAIN").decode())
    helper = source(tmp_path, "ops/gain.py", "GAIN = 2\n")
    also = SourceFile("ops/gain.py", helper.path, helper.digest)
    sources = {"custom_operators.0.files": (ours, helper), "custom_operators.0.with.0": (also,)}
    assert {*declared(["ops/*.py"], sources).sources} == {"gain_op.py", "ops/gain.py"}
