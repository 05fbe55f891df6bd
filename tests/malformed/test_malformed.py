"""Malformed YAML: each is one clear error, quickly, in little memory, and touches nothing else.

A row: its name, what is done to the project, the command, the exit code, words of the one error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from malformed.runner import Case, Server, check

Damage = Callable[[Path], object]
LIST, BUILD = ("list",), ("build",)
HEAD = "model: {path: model.onnx}\ntargets: [rdk-x5]\n"
DATA = "data: {image: {files: samples/*.npy}}\n"


def yaml(text: str | bytes, name: str = "project.yaml") -> Damage:
    data = text if isinstance(text, bytes) else text.encode()
    return lambda project: (project / name).write_bytes(data)


def keys(text: str) -> Damage:
    """A good project with these keys besides."""
    return yaml(f"{HEAD}{DATA}{text}\n")


def model(path: str) -> Damage:
    return yaml(f"model: {{path: {path}}}\ntargets: [rdk-x5]\n{DATA}")


def both(first: Damage, second: Damage) -> Damage:
    return lambda project: (first(project), second(project))


def instead(name: str, make: Callable[[Path], object]) -> Damage:
    """What `make` makes in the place of the file `name`."""

    def damage(project: Path) -> None:
        (project / name).unlink(missing_ok=True)
        make(project / name)

    return damage


def link(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def alias_bomb() -> str:
    lines = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(["a0: &a0 [1, 1]", *lines])


TEXT = {
    "empty": ("", ["missing key `model`"]),
    "of comments": ("# nothing\n", ["missing key `model`"]),
    "one word": ("model", ["project.yaml"]),
    "a list": ("- model\n- targets\n", ["project.yaml"]),
    "an alias bomb": (alias_bomb(), ["more than 100000 values in one file"]),
    "an alias inside itself": ("model: &m [*m]\n", ["project.yaml:1"]),
    "an alias of nothing": ("model: *m\n", ["project.yaml:1"]),
    "a merge key": ("a: &a {x: 1}\nmodel: {<<: *a}\n", ["merge keys are not read"]),
    "lists in lists": ("model: " + "[" * 50_000, ["project.yaml:1"]),
    "mappings in mappings": ("{a: " * 50_000, ["project.yaml:1"]),
    "indented for ever": ("\n".join(" " * n + "a:" for n in range(2000)), ["project.yaml"]),
    "a scalar of 20 MB": ("model: " + "x" * 20_000_000, ["project.yaml"]),
    "a key of 1 MB": ("x" * 1_000_000 + ": 1\n", ["project.yaml"]),
    "200,000 keys": ("".join(f"k{n}: 1\n" for n in range(200_000)), ["project.yaml"]),
    "a key written twice": (HEAD + HEAD, ["key `model` is written twice, on line 1 and line 3"]),
    "indented by tabs": ("model:\n\tpath: model.onnx\n", ["project.yaml:2"]),
    "Latin-1": ("model: é\n".encode("latin-1"), ["UTF-8", "project.yaml"]),
    "UTF-16": ("model: x\n".encode("utf-16"), ["project.yaml"]),
    "half a surrogate": (b"model: \xed\xa0\x80\n", ["UTF-8", "project.yaml"]),
    "a NUL byte": (b"model: a\0b\n", ["project.yaml"]),
    "an ESC byte": (b"model: a\x1b[2Jb\n", ["project.yaml"]),
    "an open string": ('model: "x\n', ["project.yaml"]),
    "a Python object": ("model: !!python/object/apply:os.system [ls]\n", ["tag", "is not read"]),
    "a binary": ("model: !!binary aGk=\n", ["tag `!!binary` is not read"]),
    "two documents": (HEAD + "---\n" + HEAD, ["project.yaml:3"]),
    "a number of 5,000 digits": (
        HEAD + f"inputs: {{x: {{scale: {'9' * 5000}}}}}",
        ["project.yaml"],
    ),
    "not a number": (HEAD + "inputs: {x: {scale: .nan}}", ["project.yaml:3"]),
    "a matrix of millions": (
        HEAD + "matrix: {calibration.percentile: &p [" + "0.9, " * 1000 + "0.8]}",
        ["too many combinations"],
    ),
    "a variant that leaves the folder": (HEAD + DATA + "variants: {../x: {}}", ["`../x` cannot"]),
    "variants in variants": (HEAD + "variants: {a: {variants: {b: {}}}}", ["project.yaml:3"]),
    "a target that leaves the folder": ("model: {path: m}\ntargets: [../../x]", ["`../../x`"]),
}

LONG, DEEP = "x" * 300, "d/" * 3000 + "x"
FILES = (
    Case(
        "a folder for the project",
        instead("project.yaml", Path.mkdir),
        LIST,
        2,
        ("no project here",),
    ),
    Case(
        "a pipe for the project", instead("project.yaml", os.mkfifo), LIST, 2, ("no project here",)
    ),
    Case(
        "a link to nothing", instead("project.yaml", link("nowhere")), LIST, 2, ("no project here",)
    ),
    Case(
        "a link to itself",
        instead("project.yaml", link("project.yaml")),
        LIST,
        2,
        ("no project here",),
    ),
    Case(
        "a device for the project",
        instead("project.yaml", link("/dev/zero")),
        LIST,
        2,
        ("no project here",),
    ),
    Case(
        "a folder for a section", lambda p: (p / "inputs.yaml").mkdir(), LIST, 2, ("inputs.yaml",)
    ),
    Case("a pipe for a section", instead("data.yaml", os.mkfifo), LIST, 2, ("plain file",)),
    Case(
        "a section that is a device", instead("data.yaml", link("/dev/zero")), LIST, 2, ("data.y",)
    ),
    Case("a section behind no link", instead("data.yaml", link("no")), LIST, 2, ("data.yaml",)),
    Case("a section that is a list", yaml("- x", "inputs.yaml"), LIST, 2, ("inputs",)),
    Case("a section called .yml", yaml("", "inputs.yml"), LIST, 2, ("rename it", "inputs.yml")),
    Case(
        "a model that is a folder", model("samples"), BUILD, 2, ("`samples` is not a plain file",)
    ),
    Case(
        "a model that is a pipe",
        both(instead("pipe.onnx", os.mkfifo), model("pipe.onnx")),
        BUILD,
        2,
        ("`pipe.onnx` is not a plain file",),
    ),
    Case(
        "a model that is a device",
        model("/dev/zero"),
        BUILD,
        2,
        ("`/dev/zero` is not a plain file",),
    ),
    Case(
        "a model of standard input",
        model("/dev/stdin"),
        BUILD,
        2,
        ("`/dev/stdin` is not a plain file",),
    ),
    Case(
        "metadata of other outputs",
        both(
            yaml(
                '{"schema_version": 2, "outputs": [{"name": "logit", "type": "detection"}]}',
                "e.json",
            ),
            yaml("model: {path: model.onnx, metadata: e.json}\ntargets: [rdk-x5]\n" + DATA),
        ),
        BUILD,
        3,
        ("no output `logit`", "project.yaml:1:37", "did you mean `logits`?"),
    ),
    Case("a model that is the root", model("/"), BUILD, 2, ("`/` is not a plain file",)),
    Case("a model without a name", model('""'), BUILD, 2, ("project.yaml",)),
    Case("a model with NUL in its name", model(r'"a\0b.onnx"'), BUILD, 2, ("project.yaml",)),
    Case("a model of a long name", model(f"{LONG}.onnx"), BUILD, 2, ("no file `xxx",)),
    Case("a model of a long path", model(f"{DEEP}.onnx"), BUILD, 2, ("no file `d/d/",)),
    Case(
        "a model behind a link to itself",
        both(instead("model.onnx", link("model.onnx")), model("model.onnx")),
        BUILD,
        2,
        ("`model.onnx` is not a plain file",),
    ),
    Case(
        "a model that is not one, elsewhere",
        model("../../dodo.py"),
        BUILD,
        3,
        ("dodo.py",),
    ),
    Case(
        "samples with NUL in their name",
        yaml(HEAD + r'data: {image: {files: "a\0b/*.npy"}}'),
        BUILD,
        2,
        ("project.yaml",),
    ),
    Case(
        "samples of a long name",
        yaml(HEAD + f"data: {{image: {{files: {LONG}/*.npy}}}}"),
        BUILD,
        2,
        ("no file matches `xxx",),
    ),
    Case(
        "samples that are a device",
        yaml(HEAD + "data: {image: {files: /dev/zero}}"),
        BUILD,
        2,
        ("plain file",),
    ),
    Case(
        "samples below a file",
        yaml(HEAD + "data: {image: {files: model.onnx/*}}"),
        BUILD,
        2,
        ("no file matches `model.onnx/*`",),
    ),
    Case(
        "a pattern for a regular expression to choke on",
        yaml(HEAD + f"data: {{image: {{files: '{'*a' * 60}b'}}}}"),
        BUILD,
        2,
        ("no file matches",),
    ),
    Case(
        "a variable that leads nowhere",
        yaml(HEAD + "data: {image: {files: '${ENV:NPUMAKE_NOT_SET}/*'}}"),
        BUILD,
        2,
        ("`NPUMAKE_NOT_SET` is not set",),
    ),
    Case(
        "operators of another folder",
        keys("custom_operators: ['../../*.py']"),
        BUILD,
        2,
        ("names Python outside the project",),
    ),
    Case(
        "operators of an absolute path",
        keys("custom_operators: ['/usr/lib/python3*/*.py', '/*/*.py', '/usr/bin/*']"),
        BUILD,
        2,
        ("project.yaml",),
    ),
    Case(
        "operators behind a link",
        both(instead("ops.py", link("../../dodo.py")), keys("custom_operators: [ops.py]")),
        BUILD,
        2,
        ("names Python outside the project",),
    ),
    Case("a prefix that climbs", keys("compile: {prefix: ../../x}"), BUILD, 2, ("a file name",)),
    Case(
        "a prefix that is a path", keys("compile: {prefix: /tmp/x}"), BUILD, 2, ("not a file name",)
    ),
    Case("a prefix of dots", keys("compile: {prefix: ..}"), BUILD, 2, ("not a file name",)),
    Case("a prefix with NUL", keys(r'compile: {prefix: "a\0b"}'), BUILD, 2, ("project.yaml:4",)),
    Case("a long prefix", keys(f"compile: {{prefix: {LONG}}}"), BUILD, 2, ("not a file name",)),
    Case(
        "a config that is a pipe",
        both(instead("v.yaml", os.mkfifo), yaml("dialect: hb_mapper\nconfig: v.yaml\n")),
        LIST,
        2,
        ("v.yaml",),
    ),
    Case(
        "a config that is a device",
        yaml("dialect: hb_mapper\nconfig: /dev/zero\n"),
        LIST,
        2,
        ("/dev/zero",),
    ),
    Case(
        "a config elsewhere that is none",
        yaml("dialect: hb_mapper\nconfig: ../../dodo.py\n"),
        LIST,
        2,
        ("dodo.py",),
    ),
    Case(
        "a config with NUL in its name",
        yaml('dialect: hb_mapper\nconfig: "a\\0b"\n'),
        LIST,
        2,
        ("project.yaml",),
    ),
    Case(
        "artifacts that would go elsewhere",
        instead("out", link("../..")),
        BUILD,
        2,
        ("a link, through which artifacts would be written elsewhere", "out"),
    ),
    Case(
        "stamps that would go elsewhere",
        lambda project: ((project / "out").mkdir(), (project / "out/.npumake").symlink_to("../..")),
        BUILD,
        2,
        ("out/.npumake",),
    ),
    Case("a file for the artifacts", yaml("", "out"), BUILD, 5, ("out",)),
)


@pytest.mark.parametrize("name", TEXT)
def test_malformed_yaml_is_one_error(name: str, server: Server, tmp_path: Path) -> None:
    text, words = TEXT[name]
    check(Case(name, yaml(text), LIST, 2, tuple(words)), server, tmp_path / "w")


@pytest.mark.slow(cases=18)
@pytest.mark.parametrize("case", FILES, ids=lambda case: case.name)
def test_what_is_no_file_of_the_project_is_one_error(
    case: Case, server: Server, tmp_path: Path
) -> None:
    check(case, server, tmp_path / "w")
