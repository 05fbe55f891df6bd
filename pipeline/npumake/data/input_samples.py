"""The samples of one model input: each file is read once, each sample prepared once.

    file → array (formats) → transforms, shape and type of the input (files)
         → the raw value x, denormalized if the file is normalized (normalized)
    x → its facts (facts, lint)
    x, an image minus its offset → feeds by graph input (chip_feed)

A stack is a file of many samples; its first dimension counts them. Only one sample or one stack is
in memory at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from npumake.data.chip_feed import fed_form
from npumake.data.facts import Fact, fact
from npumake.data.files import is_cast, noise, prepared, to_feed
from npumake.data.formats import InputSpec, decoded, is_image, is_plain
from npumake.data.lint import LintedInput, Role, SampleFinding, input_findings
from npumake.data.normalized import raw
from npumake.data.samples import Feed
from npumake.data.snapshot import Snapshot
from npumake.data.snapshot_samples import opened, require_input, stored
from npumake.data.transforms import color_order, makes_yuv
from npumake.detection.metadata import Tiling
from npumake.errors import ProjectError, Route, did_you_mean
from npumake.progress import tell
from npumake.project.feeding import Feeding
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.names import entries, strangers
from npumake.project.sections import Files, Input, Order

MAX_FILE_BYTES = 1 << 30  # of one file
# The share of a range's width that denormalizing in float32 may lose.
ROUNDING_SHARE = 1e-4
# Transforms that pad.
PADDING = frozenset({"pad", "pad_resize", "padded_center_crop", "warp_affine"})


@dataclass(frozen=True)
class ModelInput:
    """An input of the trained model; the graph may have planes in its place."""

    name: str
    section: Input  # its section in the YAML
    form: Feeding  # how it is fed
    spec: InputSpec  # shape and type of the raw array


class SampleFile(NamedTuple):
    """A sample in a file; `array` reads it."""

    name: str
    array: Callable[[], np.ndarray]


class PreparedSample(NamedTuple):
    """The facts about a sample's raw value, and its feeds."""

    fact: Fact
    feed: Feed


@dataclass(frozen=True)
class InputSamples:
    """The section `data.<key>` of one input, and its files."""

    input: ModelInput
    key: str
    how: Files
    files: tuple[SourceFile, ...]
    snapshot: Snapshot | None = None

    def items(self) -> Iterator[SampleFile]:
        """All samples, in the order of the files. Raises ProjectError for an invalid stack."""
        if self.how.random is not None:
            sample = noise(self.input.name, self.how, self.input.spec)
            for index in range(self.how.random):
                yield SampleFile(f"noise {index:04}", partial(sample, index))
        if self.snapshot is not None:
            names, read = stored(self.snapshot, self.input.name, self.input.section.layout)
            for index, name in enumerate(names):
                yield SampleFile(name, partial(read, index))
        for file in self.files:
            if self.how.stacked:
                yield from self._stack(file)
            else:
                yield SampleFile(file.name, partial(self._decoded, file))

    def prepare(self, item: SampleFile) -> PreparedSample:
        """The sample's facts and feeds. Raises ProjectError with the file if it does not fit."""
        target, x = self.input, self.values(item)
        about = fact(item.name, x, target.section.layout)
        return PreparedSample(about, fed_form(to_feed(x, target.spec), target.form, target.name))

    def values(self, item: SampleFile) -> np.ndarray:
        """The raw values, before mean and scale. Raises ProjectError as `prepare`."""
        x = item.array()
        return x if self.how.random is not None else self._raw(x, item.name)

    def refuse_findings(self, facts: Sequence[Fact], role: Role, is_alone: bool) -> None:
        """Prints findings about this input under `warn`. Raises ProjectError for the worst one that
        is neither under `warn` nor under `allow`."""
        images = (0.0, 255.0) if self.input.spec.offset else (-np.inf, np.inf)
        low, high = self.how.range or images
        slack = ROUNDING_SHARE * (high - low) if self.how.normalized else 0.0
        own = LintedInput(self.input.name, role, facts)
        for finding in input_findings(own, (low, high), slack, is_alone):
            self.refuse(finding)

    def refuse(self, finding: SampleFinding) -> None:
        """Raises ProjectError for a finding that is neither under `warn` nor under `allow`."""
        pads = any(PADDING & step.keys() for step in self.how.transforms)
        allowed = {*self.how.allow, *(("padding",) if pads else ())}
        if finding.kind in self.how.warn:
            tell(f"{finding.what} (`{self.input.name}`)")
        elif finding.kind == "few" and "few" in allowed:
            tell(f"`{self.input.name}`: {finding.what} for ranges that do not depend on them")
        elif finding.kind not in allowed:
            hint = f"{self.allowance(finding.kind)} if it is meant to be so"
            raise ProjectError(finding.what, Route(f"data.{self.key}"), hint)

    def allowance(self, kind: str) -> str:
        """The key that allows a finding beside those that are allowed."""
        return f"`allow: [{', '.join((*self.how.allow, kind))}]` under `{self.key}:`"

    def tell_casts(self, facts: list[Fact]) -> None:
        """Prints a note on samples whose type differs from the input's."""
        spec, stored = self.input.spec, sorted({item.dtype for item in facts})
        plain = any(is_plain(file.name) for file in self.files) and not self.how.transforms
        if names := [t for t in stored if is_cast(t, spec)] if plain else []:
            tell(f"samples of {', '.join(names)} are fed to `{self.input.name}` as {spec.dtype}")

    def _decoded(self, file: SourceFile) -> np.ndarray:
        if os.path.getsize(file.path) > MAX_FILE_BYTES:
            raise ProjectError(f"a file of more than {MAX_FILE_BYTES} bytes", file.name)
        if is_image(file.name):
            self._refuse_rgb(file.name)
        how = replace(self.how, channels=_order(self.how, self.input.section))
        return decoded(file.read(), file.name, how, self.input.spec)

    def _refuse_rgb(self, name: str) -> None:
        if self.input.section.type == "yuv444" and not makes_yuv(self.how.transforms):
            hint = "add  transforms: [{rgb2yuv444: {data_format: HWC}}]"
            raise ProjectError("a picture of rgb, the model was trained on yuv444", name, hint)

    def _stack(self, file: SourceFile) -> Iterator[SampleFile]:
        if not is_plain(file.name):
            hint = "only .npy, .npz and .safetensors hold one"
            raise ProjectError("not a stack of samples", file.name, hint)
        stack = self._decoded(file)
        if stack.ndim == 0:
            raise ProjectError("a single number is not a stack of samples", file.name)
        for index in range(len(stack)):
            yield SampleFile(f"{index} of {file.name}", partial(stack.__getitem__, index))

    def _raw(self, array: np.ndarray, name: str) -> np.ndarray:
        section, how, spec = self.input.section, self.how, self.input.spec
        stored_spec = replace(spec, offset=0) if how.normalized else spec
        sample = prepared(
            array, name, how, stored_spec, section.layout, f"data.{self.key}.transforms"
        )
        return (
            raw(sample, section.mean, section.scale, section.layout) if how.normalized else sample
        )


def _order(how: Files, section: Input) -> Order:
    """The channel order to read an image in: `channels`, else the order of the first color
    transform, else the trained order."""
    trained = section.type if section.type in ("bgr", "gray") else "rgb"
    return how.channels or color_order(how.transforms) or trained


def input_samples(
    inputs: Mapping[str, ModelInput],
    data: Mapping[str, Files],
    sources: SourceFiles,
    tiling: Tiling | None = None,
) -> list[InputSamples]:
    """The samples of each input. `tiling` is the model's, for a snapshot. Raises ProjectError for
    an input without samples, an unknown input and contradicting keys."""
    for name in strangers(data, inputs):
        hint = did_you_mean(name, inputs)
        raise ProjectError(f"the model has no input `{name}`", Route(f"data.{name}"), hint)
    keys = entries(data, inputs)
    for name in inputs:
        if name not in keys:
            hint = f"add  {name}: {{files: ...}}"
            raise ProjectError(f"no samples for input `{name}`", Route("data"), hint)
    for name, key in keys.items():
        _refuse_contradictions(name, data[key], f"data.{key}")
    snapshots = _snapshots(inputs, keys, sources, tiling)
    return [
        InputSamples(
            inputs[name],
            key,
            data[key],
            sources.get(f"data.{key}.files", ()),
            snapshots.get(key),
        )
        for name, key in keys.items()
    ]


def _snapshots(
    inputs: Mapping[str, ModelInput],
    keys: Mapping[str, str],
    sources: SourceFiles,
    tiling: Tiling | None,
) -> Mapping[str, Snapshot]:
    """The snapshots by key of `data`, each opened and checked once for all its inputs."""
    snapshots: dict[str, Snapshot] = {}
    for name, key in keys.items():
        route = f"data.{key}.snapshot"
        if route not in sources:
            continue
        section, spec = inputs[name].section, inputs[name].spec
        if key not in snapshots:
            (file,) = sources[route]
            snapshots[key] = opened(file, spec.shape, section.layout, tiling)
            for remark in snapshots[key].remarks:
                tell(remark)
        require_input(snapshots[key], name, section, route)
    return snapshots


def _refuse_contradictions(name: str, how: Files, route: str) -> None:
    for other in ("files", "random", "member", "dtype", "transforms", "normalized", "stacked"):
        if how.snapshot is not None and getattr(how, other):
            message = f"`{other}` beside a snapshot"
            raise ProjectError(message, Route(f"{route}.{other}"), "leave it out")
    sources = (how.files, how.snapshot, how.random)
    if sum(source is not None for source in sources) != 1:
        hint = "give `files`, a `snapshot`, or `random` for noise"
        raise ProjectError(f"input `{name}` needs either files or noise", Route(route), hint)
    if how.range is not None and (len(how.range) != 2 or how.range[0] >= how.range[1]):
        raise ProjectError("a range is [lowest, highest]", Route(f"{route}.range"))
    for step in ("transforms", "normalized", "stacked"):
        if how.random is not None and getattr(how, step):
            raise ProjectError("noise is fed as it is", Route(f"{route}.{step}"))
