"""What npumake installs: a small base without sympy, and extras that the hints of errors name."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from onnx import helper
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from npumake.cache.signature import FileDigests
from npumake.compilers.adapters.adapter import ADAPTERS
from npumake.debug.compiled_file.runs import RUNTIMES
from npumake.extras import EXTRAS, install_line
from npumake.make import programs
from npumake.make.code import SourceCode
from npumake.stages import STAGES
from npumake.stages.stage import stage_named

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = {
    extra: [Requirement(line) for line in lines]
    for extra, lines in PROJECT["optional-dependencies"].items()
}
BASE = [Requirement(line) for line in PROJECT["dependencies"]]
DEVELOPERS = {"dev", "docs"}  # extras for those who change npumake
NAMED = re.compile(r"npumake\[([a-z0-9,-]+)\]")

# Every distribution of the base, with what they bring themselves. A new one is a decision.
CLOSURE = {
    *(
        "argcomplete",
        "attrs",
        "cffi",
        "cloudpickle",
        "cryptography",
        "doit",
        "flatbuffers",
        "jsonschema",
    ),
    *("jsonschema-specifications", "markdown-it-py", "mdurl", "ml-dtypes", "numpy", "onnx"),
    *("onnx-ir", "onnxruntime", "packaging", "pillow", "protobuf", "pycparser", "pygments"),
    *("pyyaml", "referencing", "rich", "rpds-py", "safetensors", "typing-extensions"),
}


def distributions(extra: str) -> set[str]:
    """What an extra installs, through extras of ours that it names."""
    found: set[str] = set()
    for line in OPTIONAL[extra]:
        if line.name == PROJECT["name"]:
            found |= {name for inner in line.extras for name in distributions(inner)}
        else:
            found.add(line.name)
    return found


def closure(base: list[Requirement]) -> set[str]:
    """Every distribution that is installed with `base`, as the installed metadata has it."""
    found: set[str] = set()
    waiting = list(base)
    while waiting:
        line = waiting.pop()
        name = canonicalize_name(line.name)
        if name in found or (line.marker and not line.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += map(Requirement, requires(name) or ())
    return found


def unmet(base: list[Requirement]) -> list[str]:
    """Requirements that this environment does not meet: it was installed from another version."""
    found = []
    for line in base:
        try:
            is_met = line.specifier.contains(version(line.name), prereleases=True)
        except PackageNotFoundError:
            is_met = False
        if not is_met:
            found.append(str(line))
    return found


def test_the_base_brings_no_more_than_is_listed() -> None:
    if missing := unmet(BASE):
        pytest.skip(f"installed from another pyproject.toml: {', '.join(missing)}")
    assert closure(BASE) - CLOSURE == set()


@pytest.mark.parametrize("distribution", EXTRAS)
def test_the_extra_that_a_hint_names_installs_the_distribution(distribution: str) -> None:
    assert distribution in distributions(EXTRAS[distribution])


def test_every_distribution_of_an_extra_for_users_has_a_hint() -> None:
    known = {name for extra in OPTIONAL if extra not in DEVELOPERS for name in distributions(extra)}
    assert known == set(EXTRAS)


def test_every_program_that_may_be_absent_has_a_hint() -> None:
    """Those of an adapter have an interpreter of their own, which its hint describes."""
    apart = {name for adapter in ADAPTERS.values() for name in adapter.distributions}
    tables = (programs.CONVERTERS, programs.COMPILERS, programs.RUNTIMES)
    started = {name for table in tables for names in table.values() for name in names}
    assert started - apart <= set(EXTRAS)


def test_the_runtime_of_each_backend_is_one_that_its_key_names() -> None:
    for backend, runtime in RUNTIMES.items():
        known = (*programs.RUNTIMES.get(backend, ()), "")
        assert runtime.distribution in known, backend


def test_compilers_is_every_extra_but_those_of_frontends_and_developers() -> None:
    others = {"compilers", "dask", "remote", "tensorflow", *DEVELOPERS}
    assert distributions("compilers") == {
        name for extra in OPTIONAL if extra not in others for name in distributions(extra)
    }


def test_every_extra_that_a_text_names_exists() -> None:
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("pipeline/**/*.py")]
    named = {
        (file.relative_to(ROOT).as_posix(), extra)
        for file in files
        for extras in NAMED.findall(file.read_text(encoding="utf-8"))
        for extra in extras.split(",")
    }
    assert {extra for _, extra in named} >= {"compilers", "tensorflow"}
    assert [(file, extra) for file, extra in sorted(named) if extra not in OPTIONAL] == []


def test_an_unknown_distribution_is_installed_by_its_own_name() -> None:
    assert install_line("no-such", "pip") == "pip install no-such"


OPENING = """
import sys
from pathlib import Path
import npumake.runtime, npumake.debug.describe
{code}
print("cryptography" in sys.modules)
"""


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("npumake.debug.describe.describe(Path(sys.argv[1]))", False),
        ("npumake.runtime.Session(sys.argv[1])", False),
        ("npumake.runtime.Keys", True),
    ],
    ids=["describe", "session", "keys"],
)
def test_cryptography_is_loaded_for_secure_models_alone(
    tmp_path: Path, code: str, loaded: bool
) -> None:
    model = tmp_path / "model.onnx"
    node = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(name, 1, [1, 4]) for name in "xy")
    opset = [helper.make_opsetid("", 17)]
    graph = helper.make_graph([node], "relu", [x], [y])
    model.write_bytes(
        helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
    )
    run = subprocess.run(
        [sys.executable, "-c", OPENING.format(code=code), model],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout, run.returncode) == (f"{loaded}\n", 0), run.stderr


@pytest.mark.parametrize("stage", STAGES)
def test_no_artifact_depends_on_the_version_of_cryptography(tmp_path: Path, stage: str) -> None:
    sources = SourceCode(FileDigests(tmp_path / "table"), tmp_path / "memo")
    assert "cryptography" not in sources.closure(*stage_named(stage).modules).tools
