"""The law of the house: imports point down, files and functions stay small, rooms open plainly."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from npumake import FLOORS, quant
from syntax import syntax_of

ROOT = Path(__file__).parents[1]
SOURCES = "pipeline"  # the folder that holds the package
FILE_LINES, FUNCTION_LINES, PARAMETERS = 300, 40, 12
# Their parameters are those that a vendor documents; scripts pass them by name.
VENDORS_SIGNATURES = {"pipeline/npumake/debug/runall.py"}
MODULES = "pipeline/npumake/**/*.py"
HOUSES = {"npumake": FLOORS, "npumake.quant": quant.FLOORS}  # each is checked by its own map
FLOOR = {
    house: {room: floor for floor, rooms in enumerate(floors) for room in rooms}
    for house, floors in HOUSES.items()
}


def sources(root: Path, *patterns: str) -> Iterator[tuple[Path, ast.Module]]:
    for file in sorted(file for pattern in patterns for file in root.glob(pattern)):
        yield file.relative_to(root), syntax_of(file)


def room_of(file: Path, house: str) -> str:
    """graph of graph/match.py, errors of errors.py, nothing of the house itself."""
    inside = file.with_suffix("").parts[house.count(".") + 2 :]
    return "" if inside == ("__init__",) else inside[0]


def imported(tree: ast.Module, house: str) -> Iterator[tuple[int, str]]:
    """(line, room) of every import from the house, those for the type checker too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == house:
            modules = [f"{house}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        else:
            continue
        for module in modules:
            if module.startswith(f"{house}."):
                yield node.lineno, module.removeprefix(f"{house}.").split(".")[0]


def broken_imports(root: Path, house: str = "npumake") -> list[str]:
    """`file:line: room → room` of each import that does not point down."""
    floor, found = FLOOR[house], []
    for file, tree in sources(root, f"{SOURCES}/{house.replace('.', '/')}/**/*.py"):
        room = room_of(file, house)
        if not room:  # the public face, which it names for type checkers (tests/api)
            continue
        for line, other in imported(tree, house):
            is_name = other not in floor and other.isupper()  # FLOORS itself
            if room == other or is_name:
                continue
            if room not in floor or other not in floor or floor[other] <= floor[room]:
                found.append(f"{file.as_posix()}:{line}: {room} → {other}")
    return found


def too_long(root: Path) -> list[str]:
    found = []
    for file, tree in sources(root, MODULES, "dodo.py"):
        lines = len(root.joinpath(file).read_text(encoding="utf-8").splitlines())
        if lines > FILE_LINES:
            found.append(f"{file.as_posix()}: {lines} lines")
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            length = (node.end_lineno or 0) - node.lineno + 1
            if length > FUNCTION_LINES:
                found.append(f"{file.as_posix()}:{node.lineno}: {node.name} has {length} lines")
    return found


def many_parameters(root: Path) -> list[str]:
    found = []
    for file, tree in sources(root, MODULES, "dodo.py"):
        if file.as_posix() in VENDORS_SIGNATURES:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                own = node.args
                count = len(own.posonlyargs) + len(own.args) + len(own.kwonlyargs)
                if count > PARAMETERS:
                    place = f"{file.as_posix()}:{node.lineno}"
                    found.append(f"{place}: {node.name} has {count} parameters")
    return found


def crowded_doors(root: Path) -> list[str]:
    """What a room's `__init__.py` holds besides its docstring, imports, tables and functions."""
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.FunctionDef)
    found = []
    for file, tree in sources(root, "pipeline/npumake/**/__init__.py"):
        if not ast.get_docstring(tree):
            found.append(f"{file.as_posix()}:1: no docstring")
        for node in tree.body[1:]:
            is_typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            if not isinstance(node, allowed) and not is_typing:
                found.append(f"{file.as_posix()}:{node.lineno}: {type(node).__name__}")
    return found


def tree_of(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = tmp_path / SOURCES / "npumake" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("house", HOUSES)
def test_imports_point_down(house):
    assert broken_imports(ROOT, house) == []


@pytest.mark.parametrize("house", HOUSES)
def test_every_module_has_a_floor(house):
    files = sources(ROOT, f"{SOURCES}/{house.replace('.', '/')}/**/*.py")
    rooms = {room_of(file, house) for file, _ in files} - {""}
    assert rooms - set(FLOOR[house]) == set()


@pytest.mark.parametrize("house", HOUSES)
def test_every_room_on_the_map_exists(house):
    walls = ROOT.joinpath(SOURCES, *house.split("."))
    missing = [
        room
        for room in FLOOR[house]
        if not (walls / f"{room}.py").is_file() and not (walls / room / "__init__.py").is_file()
    ]
    assert missing == []


@pytest.mark.parametrize("house", HOUSES)
def test_no_room_is_on_two_floors(house):
    assert len(FLOOR[house]) == sum(len(rooms) for rooms in HOUSES[house])


@pytest.mark.parametrize(
    ("where", "text", "mistake"),
    [
        ("cache/local.py", "import os\nimport npumake.stages\n", ":2: cache → stages"),
        ("cache/local.py", "from npumake.project.check import check\n", ":1: cache → project"),
        ("cache/local.py", "from npumake import graph\n", ":1: cache → graph"),
        ("errors.py", "def f():\n    from npumake.digest import x\n", ":2: errors → digest"),
        (
            "graph/match.py",
            "import typing\nif typing.TYPE_CHECKING:\n    from npumake.quant import x\n",
            ":3: graph → quant",
        ),
        ("graph/match.py", "import npumake.attic\n", ":1: graph → attic"),
        ("attic.py", "from npumake.errors import x\n", ":1: attic → errors"),
    ],
)
def test_an_import_up_or_sideways_is_reported_with_file_and_line(tmp_path, where, text, mistake):
    assert broken_imports(tree_of(tmp_path, {where: text})) == [
        f"pipeline/npumake/{where}{mistake}"
    ]


def test_an_import_up_inside_a_room_with_floors_is_reported(tmp_path):
    files = {"quant/qdq/grid_assignment.py": "from npumake.quant.search.recipe import Recipe\n"}
    assert broken_imports(tree_of(tmp_path, files), "npumake.quant") == [
        "pipeline/npumake/quant/qdq/grid_assignment.py:1: qdq → search"
    ]


def test_an_import_down_or_of_the_same_room_is_allowed(tmp_path):
    text = "from npumake import FLOORS, errors\nimport npumake.graph.match\nimport numpy\n"
    assert broken_imports(tree_of(tmp_path, {"graph/parse.py": text})) == []


def test_files_and_functions_are_small():
    assert too_long(ROOT) == []


def test_a_long_file_and_a_long_function_are_reported(tmp_path):
    text = "x = 1\n\n\ndef f():\n" + "    y = 1\n" * 40 + "# end\n" * 300
    assert too_long(tree_of(tmp_path, {"errors.py": text})) == [
        "pipeline/npumake/errors.py: 344 lines",
        "pipeline/npumake/errors.py:4: f has 41 lines",
    ]


def test_signatures_are_short():
    assert many_parameters(ROOT) == []


def test_a_long_signature_is_reported(tmp_path):
    names = ", ".join(f"x{number}" for number in range(PARAMETERS + 1))
    root = tree_of(tmp_path, {"errors.py": f"def f(*, {names}): ...\n"})
    assert many_parameters(root) == ["pipeline/npumake/errors.py:1: f has 13 parameters"]


def test_the_door_of_a_room_is_plain():
    assert crowded_doors(ROOT) == []


def test_a_class_or_a_loop_in_a_door_is_reported(tmp_path):
    files = {
        "graph/__init__.py": '"""A room."""\n\nX = (1, 2)\n\n\nclass Graph:\n    pass\n',
        "quant/__init__.py": "import os\n\nfor x in ():\n    pass\n",
    }
    assert crowded_doors(tree_of(tmp_path, files)) == [
        "pipeline/npumake/graph/__init__.py:6: ClassDef",
        "pipeline/npumake/quant/__init__.py:1: no docstring",
        "pipeline/npumake/quant/__init__.py:3: For",
    ]


def tracked_texts() -> Iterator[tuple[str, str]]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        file = ROOT / name
        data = file.read_bytes() if file.is_file() else b""
        if b"\0" not in data:
            yield name, data.decode("utf-8", "replace")


def here() -> list[str]:
    """Where this machine keeps the checkout, the home and the environment, and gets packages."""
    folders = [ROOT, Path.home()]
    if sys.prefix != sys.base_prefix:
        folders.append(Path(sys.prefix))
    indexes = [os.environ.get(name, "") for name in ("PIP_INDEX_URL", "UV_INDEX_URL")]
    hosts = [host for index in indexes if (host := urlsplit(index).hostname)]
    return [f"{folder}/" for folder in folders if len(folder.parts) > 1] + hosts


def test_no_tracked_file_names_this_machine():
    private = here()
    found = [
        f"{name}: {place}" for name, text in tracked_texts() for place in private if place in text
    ]
    assert found == []
