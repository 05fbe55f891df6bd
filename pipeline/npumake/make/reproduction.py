"""Reproduction: a project's YAML, model and a few samples, in a folder of their own.

Files keep their place relative to the project. A folder that the YAML names by an absolute path, or
by a variable, is copied to `moved-files/`, and the YAML is rewritten. Nothing else is packed.

    <folders above, where the YAML leads there>/<project>/   YAML, and files inside the project
    moved-files/<n>/                                         files from elsewhere
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from npumake.errors import ProjectError, Route
from npumake.frontends.random_weights import with_random_weights
from npumake.make.node import ProjectPlan
from npumake.project.files import FileSource, SourceFile, expanded, model_bytes, source_files
from npumake.project.reader import Project

MOVED = "moved-files"
SAMPLED = ("data", "evaluation")  # sections whose patterns name samples
MODEL, WEIGHTS = "model.path", "model.weights"
_WILD = re.compile(r"[*?\[]")
LINKS = "pack the targets of links with --follow-links"


@dataclass(frozen=True)
class PackedFile:
    """A file at `path` of the machine, its name in the build, and its place in the reproduction."""

    name: str
    path: str
    place: str


@dataclass(frozen=True)
class Reproduction:
    """The files of a project by route, with their places; `texts` are the YAML files.

    `left_out` counts the samples that are not packed.
    """

    project: str  # its folder
    texts: Mapping[str, str]
    files: Mapping[str, tuple[PackedFile, ...]]
    left_out: int

    @property
    def places(self) -> tuple[str, ...]:
        """Every file, each once."""
        packed = (file.place for files in self.files.values() for file in files)
        return tuple(dict.fromkeys((*self.texts, *packed)))

    def write(self, folder: Path, seed: int | None) -> int:
        """Writes all files below `folder`, with random weights if there is a `seed`; returns how
        many tensors were replaced. Raises GraphError for weights that cannot be replaced."""
        for place, text in self.texts.items():
            _target(folder, place).write_bytes(text.encode())
        for route, files in self.files.items():
            if seed is None or route not in (MODEL, WEIGHTS):
                for file in files:
                    shutil.copyfile(file.path, _target(folder, file.place))
        return 0 if seed is None else self._write_random(folder, seed)

    def _write_random(self, folder: Path, seed: int) -> int:
        (model,) = self.files[MODEL]
        weights = self.files.get(WEIGHTS, ())
        beside = [SourceFile(file.name, file.path, "") for file in weights]
        places = {file.name: file.place for file in weights}
        data = model_bytes(Path(model.path))
        random = with_random_weights(data, model.name, beside, seed)
        _target(folder, model.place).write_bytes(random.model)
        for name, content in random.files.items():
            _target(folder, places[name]).write_bytes(content)
        return random.replaced


def _target(folder: Path, place: str) -> Path:
    """Raises ValueError for a place outside the folder: that is our bug."""
    file = Path(os.path.normpath(folder / place))
    if not file.is_relative_to(folder):
        raise ValueError(f"{place} leads out of the reproduction")
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def reproduction(
    project: Project, plan: ProjectPlan, max_samples: int | None, follow_links: bool = False
) -> Reproduction:
    """The reproduction with at most so many files per pattern of samples; None: all.

    Raises ProjectError for a link that leads out of the project, and for a path that cannot be
    rewritten.
    """
    directory = Path(os.path.realpath(project.directory))
    yaml = {os.path.relpath(os.path.normpath(file), project.directory) for file in project.files}
    yaml = {name for name in yaml if name.endswith((".yaml", ".yml"))}
    sources = {source.route: source for node in plan.nodes for source in node.sources}
    named = {route: _named(directory, source) for route, source in sorted(sources.items())}
    chosen = {
        route: _evenly_spaced(files, max_samples if sources[route].keys[0] in SAMPLED else None)
        for route, files in named.items()
    }
    moves = _moves(sources)
    staying = [path for route in chosen.keys() - moves for _, path in chosen[route]]
    home = _home(directory, [*yaml, *(os.path.relpath(path, directory) for path in staying)])
    files = {
        route: tuple(_packed(directory, home, file, moves.get(route)) for file in entry)
        for route, entry in chosen.items()
    }
    if not follow_links:
        read = [*(f"{directory}/{name}" for name in yaml)]
        read += [path for entry in chosen.values() for _, path in entry]
        _refuse_links(read, _roots(directory, sources.values()))
    texts = _texts(directory, sorted(yaml), home, moves.values())
    left_out = sum(len(named[route]) - len(chosen[route]) for route in named)
    return Reproduction(home, texts, files, left_out)


def _named(directory: Path, source: FileSource) -> list[tuple[str, str]]:
    """(name, path) of the source's files; paths are absolute, without `..`."""
    return [(name, os.path.normpath(path)) for name, path in source_files(directory, source)]


def _evenly_spaced(files: list[tuple[str, str]], max_samples: int | None) -> list[tuple[str, str]]:
    """At most so many, evenly spread: sorted samples are often sorted by class."""
    if max_samples is None or len(files) <= max_samples:
        return files
    return [files[index * len(files) // max_samples] for index in range(max_samples)]


# -- places ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """A folder from elsewhere: as the YAML writes it, where it is, and its new place."""

    route: str
    written: str
    root: str
    place: str


def _moves(sources: Mapping[str, FileSource]) -> dict[str, Move]:
    """The folders that are absolute or named by a variable, by the route of their key."""
    places: dict[str, str] = {}
    moves = {}
    for route, source in sorted(sources.items()):
        if os.path.isabs(source.pattern) or "${ENV:" in source.pattern:
            written = _literal(source)
            root = os.path.normpath(expanded(written))
            if root in ("/", "."):
                message = f"`{source.pattern}` begins at the root of the file system"
                raise ProjectError(message, Route(route), "write it as a path from the project")
            place = places.setdefault(written, f"{MOVED}/{len(places)}")
            place += f"/{os.path.basename(root)}" if os.path.isfile(root) else ""
            moves[route] = Move(route, written, root, place)
    return moves


def _literal(source: FileSource) -> str:
    """The folder before the first wildcard, as it is written; the folder of a single file."""
    parts = PurePosixPath(source.pattern).parts
    literal = next((n for n, part in enumerate(parts) if _WILD.search(part)), len(parts))
    head = "/".join(parts[:literal]).replace("//", "/")
    whole = literal == len(parts) and not os.path.isdir(expanded(head))
    return head.rpartition("/")[0] if whole and "/" in head else head


def _roots(directory: Path, sources: Iterable[FileSource]) -> list[Path]:
    """The project's folder, and those outside that it names."""
    named = {os.path.normpath(directory / expanded(_literal(source))) for source in sources}
    folders = [os.path.dirname(path) if os.path.isfile(path) else path for path in sorted(named)]
    outside = [path for path in folders if not Path(path).is_relative_to(directory)]
    return [directory, *(Path(os.path.realpath(path)) for path in outside)]


def _home(directory: Path, names: Sequence[str]) -> str:
    """The project's folder in the reproduction, with as many folders above it as `names` climb."""
    climbs = [len([part for part in Path(name).parts if part == ".."]) for name in names]
    return "/".join(directory.parts[-1 - max(climbs, default=0) :])


def _packed(directory: Path, home: str, file: tuple[str, str], move: Move | None) -> PackedFile:
    name, path = file
    if move is None:
        place = f"{home}/{os.path.relpath(path, directory)}"
    else:
        place = f"{move.place}/{os.path.relpath(path, move.root)}"
    return PackedFile(name, path, os.path.normpath(place))


def _refuse_links(paths: Sequence[str], roots: Sequence[Path]) -> None:
    """Raises ProjectError for a link to a file outside of all `roots`."""
    for path in paths:
        real = Path(os.path.realpath(path))
        if not any(real.is_relative_to(root) for root in roots):
            message = (
                f"`{os.path.basename(path)}` is a link to a file that the project does not name"
            )
            raise ProjectError(message, os.path.relpath(path), LINKS)


# -- YAML ------------------------------------------------------------------------------------


def _texts(
    directory: Path, names: Sequence[str], home: str, moves: Iterable[Move]
) -> dict[str, str]:
    """The YAML files by place, with the moved folders in their new place. Raises ProjectError."""
    texts = {name: (directory / name).read_bytes().decode() for name in names}
    up = "../" * len(home.split("/"))
    for move in sorted({*moves}, key=lambda move: (-len(move.written), move.route)):
        pattern = re.compile(rf"(?<![\w./}}-]){re.escape(move.written)}(?![\w.-])")
        where = [name for name, text in texts.items() if pattern.search(text)]
        if not where and up + move.place not in "".join(texts.values()):
            message = f"`{move.written}` is written in another way, and cannot be packed"
            raise ProjectError(message, Route(move.route), "write it as a path from the project")
        for name in where:
            texts[name] = pattern.sub(up + move.place, texts[name])
    return {os.path.normpath(f"{home}/{name}"): text for name, text in texts.items()}
