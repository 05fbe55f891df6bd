"""listings: the files that SyNAP's converter writes beside a model: its layers, grids and errors.

model_info.txt             always
quantization_info.yaml     if npumake quantized the model
quantization_entropy.txt   the same by `kl`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Self
from zipfile import BadZipFile, ZipFile

from npumake import digest
from npumake.bundle.archive import FORMAT, VERSION, Bundle, zipped
from npumake.compilers.handover_package import NO_SAMPLES
from npumake.debug import synap_files, synap_grids
from npumake.debug.compared import Comparison
from npumake.dialects.synaptics.formats import formats
from npumake.dialects.synaptics.rules import layer_delegates
from npumake.errors import CacheError
from npumake.frontends.tflite.detections import anchors
from npumake.graph import Graph
from npumake.project.document import parse_document
from npumake.project.files import SourceFiles
from npumake.project.sections import Calibration, Files, ModelSection, Quantization
from npumake.project.vendor import VendorDocument
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.precision.schemes import with_scheme
from npumake.quant.qdq.insert import DEFAULT
from npumake.stages.compiled import Compiled
from npumake.targets.target import Target

DIALECT = "synap"
MADE_BY = f"npumake ({FORMAT} {VERSION})"


@dataclass(frozen=True)
class Listings:
    """Texts by file name; stored as a ZIP."""

    texts: Mapping[str, str]

    suffix: ClassVar[str] = ".zip"

    def save(self, path: Path) -> None:
        path.write_bytes(zipped({name: text.encode() for name, text in self.texts.items()}))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises CacheError for a file that `save` did not write."""
        try:
            with ZipFile(path) as archive:
                return cls({name: archive.read(name).decode() for name in archive.namelist()})
        except (BadZipFile, UnicodeDecodeError) as error:
            raise CacheError(f"not listings: {error}", str(path)) from error


def listings(
    optimized_float: Graph,
    statistics: Statistics,
    calibrated: Graph,
    compiled: Compiled,
    comparison: Comparison,
    model: ModelSection,
    data: Mapping[str, Files],
    calibration: Calibration,
    target: Target,
    sources: SourceFiles,
    vendor_document: VendorDocument | None,
    quantization: Quantization = DEFAULT,
) -> Listings:
    bundle, target = Bundle.from_bytes(compiled.data), with_scheme(target, quantization)
    program = bundle.program
    own = (
        vendor_document["document"]
        if vendor_document is not None and vendor_document["dialect"] == DIALECT
        else {}
    )
    metafile = parse_document(digest.canonical(own), "metafile")
    texts = formats(metafile, program.inputs, program.outputs, _anchors(sources))
    on = synap_files.delegates(optimized_float, comparison, layer_delegates(metafile))
    details = (MADE_BY, bundle, comparison, texts, target, on)
    files = {"model_info.txt": synap_files.model_info(*details)}
    if data and calibration.method not in NO_SAMPLES:
        files["quantization_info.yaml"] = synap_grids.quantization_info(calibrated, target)
        if calibration.method == "kl":
            entropy = synap_grids.quantization_entropy(calibrated, target, statistics)
            files["quantization_entropy.txt"] = entropy
    return Listings({name: text for name, text in files.items() if text})


def _anchors(sources: SourceFiles) -> str:
    """The value of ${ANCHORS}: the anchors of a detector's postprocessor, if any."""
    (file,) = sources["model.path"]
    is_tflite = PurePosixPath(file.name).suffix.lower() == ".tflite"
    sides = anchors(file.read()) if is_tflite else None
    rows = [] if sides is None else sides.tolist()
    return "[" + ",".join(f"[{','.join(f'{side:.6f}' for side in row)}]" for row in rows) + "]"
