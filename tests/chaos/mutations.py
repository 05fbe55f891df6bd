"""What chaos does to a project, to the program, and to what was remembered: a table, seeded.

A mutation changes one thing. It says which words `why` has to find for it, which nodes may be made
though their inputs are the same, and how it is undone.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper

from chaos.closures import importers
from chaos.laboratory import Laboratory, read_yaml, write_yaml

Node = Mapping[str, Any]


class Mutant(NamedTuple):
    """`leaf` is a pattern that every reason of `why` matches, empty where nothing is to be done.
    `touched` are the nodes that may be made, or `exact` ones must be. What was remembered and got
    damaged is repaired by `undo` in silence; what is `reversible` is a mutant once more."""

    what: str
    leaf: str
    touched: frozenset[str]
    undo: Callable[[], object]
    exact: bool = False
    same: bool = False  # no artifact may be another
    reversible: bool = True


NOBODY: frozenset[str] = frozenset()


def written(path: Path, data: bytes) -> Callable[[], object]:
    """Writes it there, as another file; gives what writes the old bytes back."""
    before = path.read_bytes() if path.exists() else None
    _put(path, data)
    return lambda: path.unlink() if before is None else _put(path, before)


def _put(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# -- sources -------------------------------------------------------------------------------


def reads(lab: Laboratory, section: str, file: str = "") -> frozenset[str]:
    """The nodes whose sources are named in that section, by a pattern that ends like the file."""
    ends = Path(file).suffix
    return frozenset(
        node["name"]
        for node in lab.plan()
        for source in node["sources"]
        if source["keys"][0] == section and source["pattern"].endswith(ends)
    )


def source(lab: Laboratory, section: str, file: str, data: bytes) -> Mutant:
    path = lab.project / file
    verb = "changed" if path.exists() else "added"
    undo = written(path, data)
    leaf = rf"{section}\..*{re.escape(path.name)}: (added|removed|changed)"
    return Mutant(f"{file} {verb}", leaf, reads(lab, section, file), undo)


def array(lab: Laboratory, rng: random.Random, section: str, pattern: str) -> Mutant:
    """One number of a sample, as large as its neighbors; often within the tick of a clock."""
    file = rng.choice(sorted(lab.project.glob(pattern)))
    image, before = np.load(file), os.stat(file)
    image.flat[rng.randrange(image.size)] = rng.uniform(-3, 3)
    changed = file.with_suffix(".new")
    with changed.open("wb") as stream:
        np.save(stream, image)
    data = changed.read_bytes()
    changed.unlink()
    found = source(lab, section, file.relative_to(lab.project).as_posix(), data)
    if rng.random() < 0.5:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return found


def sample(lab: Laboratory, rng: random.Random) -> Mutant:
    return array(lab, rng, "data", "samples/*.npy")


def added(lab: Laboratory, rng: random.Random) -> Mutant:
    data = (lab.project / "samples/0.npy").read_bytes()
    return source(lab, "data", f"samples/{rng.randrange(10, 99)}.npy", data[:-1] + b"\x3f")


def picture(lab: Laboratory, rng: random.Random) -> Mutant:
    return array(lab, rng, "evaluation", "val/*/*.npy")


def weight(lab: Laboratory, rng: random.Random) -> Mutant:
    model = onnx.load(lab.project / "model.onnx")
    tensor = rng.choice(
        [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    )
    values = numpy_helper.to_array(tensor).copy()
    values.flat[rng.randrange(values.size)] += rng.choice([-0.5, 0.25, 0.5])
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return source(lab, "model", "model.onnx", model.SerializeToString())


def python(section: str, file: str) -> Callable[[Laboratory, random.Random], Mutant]:
    """A number of that file, or a line more."""

    def mutant(lab: Laboratory, rng: random.Random) -> Mutant:
        text = (lab.project / file).read_text()
        if rng.random() < 0.5:
            text += f"MORE = {rng.randrange(1000)}\n"
        else:
            text = re.sub(
                r"(?<== )[\d.]+$", lambda m: f"{m[0]}{rng.randrange(1, 9)}", text, flags=re.M
            )
            text += "" if text != (lab.project / file).read_text() else "# another\n"
        return source(lab, section, file, text.encode())

    return mutant


# -- YAML ----------------------------------------------------------------------------------

CHOICES: Mapping[str, tuple[Any, ...]] = {
    "calibration.method": ("kl", "max", "max_percentile", "mse", "moving_average"),
    "calibration.percentile": (0.9, 0.99, 0.999, 0.99995),
    "calibration.bins": (512, 1024, 2048, 4096),
    "calibration.momentum": (0.5, 0.8, 0.9),
    "calibration.symmetric": (True, False),
    "quantization.mode": ("standard", "full"),
    "quantization.equalize": (True, False),
    "quantization.clip_weights": (True, False),
    "quantization.round_weights": ("nearest", "adaptive"),
    "quantization.bias_correction": (True, False),
    "quantization.widen_answers": (True, False),
    "inputs.image.mean": (0.0, 0.25, 0.5),
    "inputs.image.scale": (0.5, 1.0, 2.0),
    "compile.optimize_level": ("O0", "O1", "O2", "O3"),
    "compile.core_num": (1, 2),
    "compile.debug": (True, False),
    "comparison.compiled": (1, 2, 3),
}
SCORED = {"evaluation.limit": (2, 3, 4), "evaluation.dataset.label_offset": (0, 1)}


def key(lab: Laboratory, rng: random.Random) -> Mutant:
    document = read_yaml(lab.project)
    choices = {**CHOICES, **(SCORED if "evaluation" in document else {})}
    route = rng.choice(sorted(choices))
    *above, last = route.split(".")
    inside = document
    for part in above:
        inside = inside[part]
    old = inside[last]
    inside[last] = rng.choice([value for value in choices[route] if value != old])
    file = lab.project / "project.yaml"
    before = file.read_bytes()
    leaf = rf"{re.escape(route)}: {old} → {inside[last]}   \(project.yaml:\d+\)"
    back = rf"|{re.escape(route)}: {inside[last]} → {old}   \(project.yaml:\d+\)"
    touched = frozenset(n["name"] for n in lab.plan() if above[0] in n["params"])
    write_yaml(lab.project, document)
    return Mutant(
        f"{route}: {old} → {inside[last]}", leaf + back, touched, lambda: _put(file, before)
    )


def spelling(lab: Laboratory, rng: random.Random) -> Mutant:
    """The same project, written otherwise; the same file, at another time."""
    file = lab.project / "project.yaml"
    document = read_yaml(lab.project)
    shuffled = {name: document[name] for name in rng.sample(sorted(document), len(document))}
    other = rng.choice(
        [
            lambda: written(file, b"# a comment\n" + file.read_bytes()),
            lambda: (written(file, file.read_bytes()), write_yaml(lab.project, shuffled))[0],
            lambda: written(file, json.dumps(document, indent=1).encode()),
            lambda: written(
                lab.project / "samples/1.npy", (lab.project / "samples/1.npy").read_bytes()
            ),
            lambda: written(lab.project / "model.onnx", (lab.project / "model.onnx").read_bytes()),
        ]
    )
    return Mutant("another spelling", "", NOBODY, other(), same=True)


# -- the program ---------------------------------------------------------------------------


def modules(lab: Laboratory, rooms: str = "") -> list[Path]:
    found = sorted(lab.package.rglob("*.py"))
    packages = [file for file in found if (file.parent / "__init__.py").exists()]
    return [f for f in packages if re.match(rooms, f.relative_to(lab.package).as_posix())]


def edited(lab: Laboratory, file: Path, text: str, exact: bool) -> Mutant:
    name = module_name(file.relative_to(lab.package.parent))
    stages = importers(lab.package, name)
    touched = frozenset(n["name"] for n in lab.plan() if stages & {*n["modules"]})
    before = os.stat(file)
    back = written(file, text.encode())

    def undo() -> None:
        back()
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # Python has compiled that

    leaf = rf"code of {re.escape(name)}: changed" if touched else ""
    return Mutant(f"{name}", leaf, touched, undo, exact, same=exact)


def module_name(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def code(lab: Laboratory, rng: random.Random) -> Mutant:
    """One more name in a module: it computes the same, and is another program."""
    file = rng.choice(modules(lab))
    return edited(lab, file, f"{file.read_text()}\n_MORE = {rng.randrange(1000)}\n", exact=True)


def code_of_a_stage(lab: Laboratory, rng: random.Random) -> Mutant:
    file = rng.choice(modules(lab, "(stages|kernels|quant|engine|graph|passes|borders)/"))
    return edited(lab, file, f"{file.read_text()}\n_MORE = {rng.randrange(1000)}\n", exact=True)


def comment(lab: Laboratory, rng: random.Random) -> Mutant:
    file = rng.choice(modules(lab))
    found = edited(lab, file, f"{file.read_text()}\n# a comment\n", exact=False)
    return found._replace(leaf="", touched=NOBODY, same=True)


def constant(lab: Laboratory, rng: random.Random) -> Mutant:
    """Another number in what computes: another result, or none."""
    file = rng.choice(modules(lab, "(kernels|quant/(?!search)|passes)"))
    text = file.read_text()
    numbers = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and type(n.value) is int
    ]
    if not numbers:
        return code(lab, rng)
    number = rng.choice(numbers)
    lines = text.encode().split(b"\n")
    line = lines[number.lineno - 1]
    start, end = number.col_offset, number.end_col_offset
    lines[number.lineno - 1] = line[:start] + str(number.value + 1).encode() + line[end:]
    return edited(lab, file, b"\n".join(lines).decode(), exact=False)


def library(lab: Laboratory, rng: random.Random) -> Mutant:
    """Other metadata of a library, found before the installed one's."""
    tools = {n["name"]: stamp(lab, n)["document"]["tools"] for n in lab.plan()}
    name = rng.choice(sorted({tool for found in tools.values() for tool in found} - {"python"}))
    old, new = version(name), f"99.{rng.randrange(1000)}"
    folder = lab.site / f"{name.replace('-', '_')}-{new}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {new}\n")
    touched = frozenset(node for node, found in tools.items() if name in found)
    leaf = rf"{name} ({re.escape(old)} → {new}|{new} → {re.escape(old)})"
    return Mutant(
        f"{name} {new}", leaf, touched, lambda: shutil.rmtree(folder), exact=True, same=True
    )


def stamp(lab: Laboratory, node: Node) -> dict[str, Any]:
    short = node["name"].partition(":")[2].replace("/", ".")
    return json.loads((lab.project / f"out/.npumake/{short}.json").read_text())["content"]


CHANGES: Mapping[str, Callable[[Laboratory, random.Random], Mutant]] = {
    "sample": sample,
    "sample added": added,
    "weight": weight,
    "YAML key": key,
    "another YAML key": key,
    "a third YAML key": key,
    "spelling": spelling,
    "code": code,
    "code of a stage": code_of_a_stage,
    "comment in code": comment,
    "number in code": constant,
    "library": library,
}
OF_CUSTOM: Mapping[str, Callable[[Laboratory, random.Random], Mutant]] = {
    "picture": picture,
    "operator": python("custom_operators", "ops/shrink.py"),
    "file of an operator": python("custom_operators", "lib/gain.py"),
    "metric": python("evaluation", "score.py"),
    "file of a metric": python("evaluation", "lib/most.py"),
}
