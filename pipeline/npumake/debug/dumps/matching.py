"""Matches files with tensors of the program: by our name, by the trained model's, or by index.

File names often replace special characters, so names match without case and punctuation. Ambiguous
names are an error.
"""

from __future__ import annotations

import difflib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from npumake.bundle.program import Instruction, Program
from npumake.debug.dumps.files import DumpFile
from npumake.debug.dumps.manifest import TensorDescription
from npumake.debug.dumps.naming import Label, label
from npumake.errors import ProjectError, did_you_mean

SUFFIXES = ("_activated_quantized", "_quantized", "_activated", "_dequantized")
MAX_WHOLE_NAME_CHARACTERS = 200  # characters; longer file names may be truncated
_AFFIXES = re.compile(r"(^\d+[_-])|((_output_|_out|:)\d+$)")  # around the name of a tensor


@dataclass(frozen=True)
class Match:
    """A file, its label from the name, its entry in the manifest, and its tensor."""

    file: DumpFile
    label: Label
    described: TensorDescription | None
    tensor: str


@dataclass(frozen=True)
class Names:
    """The names of a program's tensors: their own, and aliases by the names of their nodes.
    `inside` are tensors of the trained model that exist only inside a fused node."""

    program: Program
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inside: Mapping[str, str] = field(default_factory=dict)

    def tensor(self, names: Iterable[str]) -> str | None:
        """The tensor with one of these names. Raises ProjectError for an ambiguous name."""
        for name in names:
            if name in self.program.tensors:
                return name
        for name in names:
            tensors = self.aliases.get(folded(name), ())
            if len(tensors) > 1:
                message = (
                    f"`{name}` may be {' or '.join(f'`{candidate}`' for candidate in tensors)}"
                )
                raise ProjectError(message, None, "name the tensor in a manifest.json")
            if tensors:
                return tensors[0]
        return None

    def is_inside(self, name: str) -> bool:
        """Whether the name is of a tensor inside a fused node."""
        return any(folded(alias) in self.inside for alias in label(name).names)

    def cut(self, name: str) -> str | None:
        """The only tensor whose name begins so, if the file's name may be truncated."""
        if len(name) < MAX_WHOLE_NAME_CHARACTERS:
            return None
        begin = folded(name)
        tensors = [tensor for tensor in self.program.tensors if folded(tensor).startswith(begin)]
        return tensors[0] if len(tensors) == 1 else None


def folded(name: str) -> str:
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


def names_of(program: Program, trained: Mapping[str, Sequence[str]] | None = None) -> Names:
    """The names of a program's tensors; `trained` maps nodes of the trained model to their
    outputs, in order."""
    order = {name: index for index, name in enumerate(trained or {})}
    exact, weak = defaultdict[str, set[str]](set), dict[str, str]()
    inside: dict[str, str] = {}
    for name in program.tensors:
        exact[folded(name)].add(name)
    for step in program.instructions:
        main = step.outputs[0]
        for name in _own_names(step):
            weak[folded(name)] = main
        last = max(step.origin, key=lambda name: order.get(name, -1), default="")
        for node in step.origin:
            for tensor in (trained or {}).get(node, ()):
                (weak if node == last else inside)[folded(tensor)] = main
    aliases: dict[str, tuple[str, ...]] = {name: (tensor,) for name, tensor in weak.items()}
    aliases |= {name: tuple(sorted(tensors)) for name, tensors in exact.items()}
    return Names(program, aliases, {k: v for k, v in inside.items() if k not in aliases})


def matched(
    files: Iterable[DumpFile],
    described: Mapping[str, TensorDescription],
    names: Names,
    folder: Path,
) -> tuple[list[Match], list[str]]:
    """One file per tensor, and the files without a tensor. Raises ProjectError for an ambiguous
    name, and if no file matches."""
    by_tensor, others = defaultdict[str, list[Match]](list), list[str]()
    files = list(files)
    shared = os.path.commonpath([os.path.dirname(entry.name) for entry in files]) if files else ""
    for file in files:
        label_ = label(file.name)
        below = file.name[len(shared) :].lstrip("/")
        description = described.get(file.name) or described.get(below)
        tensor = _tensor(label_, description, names, below)
        if tensor is None:
            others.append(file.name)
        else:
            by_tensor[tensor].append(Match(file, label_, description, tensor))
    if not by_tensor:
        raise ProjectError("no file name matches a tensor", str(folder), _nearest(others, names))
    return [_only(group) for group in by_tensor.values()], others


def _own_names(step: Instruction) -> Iterator[str]:
    """The aliases of a step's output. Quantize and dequantize leave the node's names to the step
    that computes the tensor."""
    plain = step.outputs[0]
    for suffix in SUFFIXES:
        if plain.endswith(suffix):
            yield plain.removesuffix(suffix)
            break
    if step.op not in ("quantize", "dequantize"):
        yield step.name
        yield from reversed(step.origin)


def _tensor(
    label_: Label, description: TensorDescription | None, names: Names, below: str
) -> str | None:
    """The tensor of a file; `below` is its name without the dump's common folder."""
    candidates = [
        *(() if description is None else (description.name,)),
        *label_.names,
        *label(below).names,
    ]
    tensor = names.tensor([*candidates, *_plainer(candidates)])
    if tensor is not None:
        return tensor
    places = names.program.outputs if label_.role == "output" else names.program.inputs
    if label_.role and label_.index is not None and label_.index < len(places):
        return places[label_.index]
    return next((cut for name in candidates if (cut := names.cut(name))), None)


def _plainer(names: Iterable[str]) -> Iterator[str]:
    """Names without a number in front or an index behind."""
    return (_AFFIXES.sub("", name) for name in names)


def _only(matches: Sequence[Match]) -> Match:
    first, *others = sorted(matches, key=lambda match: match.label.rank)
    if others and others[0].label.rank == first.label.rank:
        names = f"{first.file.display_name} and {others[0].file.display_name}"
        message = f"two files for `{first.tensor}`: {names}"
        raise ProjectError(message, str(first.file.path), "leave one of them in the folder")
    return first


def _nearest(others: Sequence[str], names: Names) -> str:
    """A hint with the most similar pair of a dump's and our name."""
    if not others:
        return "a dump has .npy, .npz, .bin, .raw, .dat, .txt or .tensor files"
    by_folded = {folded(name): name for name in names.program.tensors}
    pairs = [
        (difflib.SequenceMatcher(None, folded(name), near).ratio(), name, by_folded[near])
        for name in others[:64]
        for near in difflib.get_close_matches(folded(name), by_folded, n=1, cutoff=0.6)
    ]
    if not pairs:
        return did_you_mean(others[0], names.program.tensors)
    _, name, near = max(pairs)
    return f"is `{name}` meant to be `{near}`? a manifest.json can map it"
