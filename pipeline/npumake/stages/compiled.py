"""compiled: one file per target: npumake's own integers, or the output of the target's compiler.

hybrid   Q/DQ graph → integer program (npumake.engine.lower), its CPU nodes as subgraphs → bundle
         with its provenance, the Python of the custom operators and the metadata of a detector
         → without the removed border nodes (npumake.runtime.stripping)
others   the same program → .tflite → Vela's, or IREE's (npumake.compilers); or the Q/DQ graph →
         OpenVINO's, Qualcomm's or Rockchip's, each in an interpreter of its own

Every file has the digests of its models, down to the trained one: a bundle in its
provenance, an `.onnx` in its metadata, others in an appended ZIP, if their format allows it.

With `compile: {vendor_tool: true}` the vendor's own tool compiles the hand-over package. Its
version is in the key, and its messages are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from npumake import digest
from npumake.borders.images import batch
from npumake.borders.policies import policies
from npumake.bundle.archive import CALIBRATION, DDR, INPUTS, Bundle
from npumake.bundle.chain import chain_of, provenance_member
from npumake.bundle.program import Program
from npumake.compilers.handover import Handover
from npumake.compilers.widths import hold_grids, hold_widths
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.lower import lowered
from npumake.engine.subgraphs import joined
from npumake.errors import GraphError, ProjectError, Route
from npumake.graph import Graph
from npumake.late import when_used
from npumake.project.compiling import OWN_KEYS, BoardCost, Compile
from npumake.project.files import SourceFiles
from npumake.project.sections import Calibration, Input, ModelSection, Security
from npumake.quant.qdq.converter_metadata import members_beside
from npumake.targets.settings import check_border_kept, check_settings
from npumake.targets.target import Target

with when_used(
    "npumake.compilers.backends",
    "npumake.compilers.read_back",
    "npumake.compilers.vendor_tool",
    "npumake.dialects.tools",
):  # loaded only when used
    from npumake.compilers import backends, read_back, vendor_tool
    from npumake.dialects import tools


@dataclass(frozen=True)
class Compiled:
    """The compiled file; its suffix is the target's (Target.makes)."""

    data: bytes

    suffix: ClassVar[str] = Bundle.suffix

    def save(self, path: Path) -> None:
        path.write_bytes(self.data)

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls(path.read_bytes())


def compiled(
    quantized: Graph,
    target: Target,
    compile: Compile,
    security: Security,
    operators: Operators = NO_OPERATORS,
    inputs: Mapping[str, Input] | None = None,
    calibration: Calibration | None = None,
    handover: Handover | None = None,
    chain: Mapping[str, str] | None = None,
    model: ModelSection | None = None,
    sources: SourceFiles | None = None,
    cost: BoardCost | None = None,
) -> Compiled:
    check_settings(compile, quantized, target)
    if handover is not None:
        tool = tools.TOOLS[target.vendor]
        return Compiled(vendor_tool.vendor_made(handover, tool, target.name, compile.profiling))
    program = lowered(quantized, target.rounding, target.runnable)
    beside = members_beside(quantized, target, compile.task)
    links = chain_of(sources or {}, chain or {})
    rules = policies(security, quantized, program)
    if target.backend != "hybrid":
        check_border_kept(compile, target)
        _refuse_bundle_features(quantized, target, bool(rules))
        data = backends.built(program, quantized, target, beside | provenance_member(links))
        hold_widths(read_back.types_of(data, quantized, target.backend), program)
        hold_grids(read_back.grids_of(data, target.backend), program)
        return Compiled(data)
    provenance = {
        **links,
        "quantized": digest.of_bytes(quantized.to_bytes()),
        "target": digest.of_document(target),
        **_sections(inputs, calibration),
    }
    code = operators.used_by(quantized).sources
    contents = (target.name, joined(program), provenance, batch(quantized), code, beside)
    bundle = Bundle(*contents, settings=_settings(compile, cost), security=rules)
    return _with_planned_widths(_stripped(bundle, compile), program)


def _settings(compile: Compile, cost: BoardCost | None) -> dict[str, digest.Json]:
    """The settings of the compilation and of the board's memory, for the file."""
    settings = {key: value for key, value in digest.plain(compile).items() if key not in OWN_KEYS}
    return settings if cost is None or cost.ddr is None else {**settings, DDR: cost.ddr}


def _with_planned_widths(bundle: Bundle, program: Program) -> Compiled:
    """The bundle's bytes, with the types of `program` in them. Raises StageError for others."""
    data = bundle.to_bytes()
    tensors = Bundle.from_bytes(data).program.tensors
    hold_widths({name: tensor.dtype for name, tensor in tensors.items()}, program)
    return Compiled(data)


def own_file(compiled: Compiled, handover: Handover | None = None) -> bytes | None:
    """The compiled file; None if the vendor's tool made it."""
    return None if handover else compiled.data


def _stripped(bundle: Bundle, compile: Compile) -> Bundle:
    """The bundle without the border nodes that `compile` removes."""
    if not compile.remove_types and not compile.remove_nodes:
        return bundle
    # Its package loads the code for signed bundles, which few builds need.
    from npumake.runtime.stripping import stripped  # noqa: PLC0415

    return stripped(bundle, compile.remove_types, compile.remove_nodes)


def _refuse_bundle_features(quantized: Graph, target: Target, has_policies: bool) -> None:
    """Raises PipelineError for features that only .hybrid bundles have."""
    if batch(quantized) > 1:
        message = f"a file for `{target.name}` takes one image per run"
        raise GraphError(message, hint="leave `batch` out, or choose a target with a .hybrid")
    if has_policies:
        message = f"a file for `{target.name}` carries no security policies"
        raise ProjectError(message, Route("security"))


def _sections(
    inputs: Mapping[str, Input] | None, calibration: Calibration | None
) -> dict[str, digest.Json]:
    """The project's sections that `npumake info` shows."""
    sections = {INPUTS: inputs, CALIBRATION: calibration}
    return {key: digest.plain(section) for key, section in sections.items() if section}
