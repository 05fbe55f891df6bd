"""npumake hb_verifier: compare the outputs of two models, as the vendor's hb_verifier does

example:
  npumake hb_verifier -m m_optimized_float_model.onnx,m_ptq_model.onnx -i sample.npy
  npumake hb_verifier -m m_ptq_model.onnx,m.hybrid -i data:sample.npy -c 5

Two .onnx files are compared by the cosine of their outputs. With a .hybrid the values must agree to
N decimals. Without -i the inputs are noise. exit codes: 0 equal, 6 different
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cli import code_trust
from npumake.errors import GateError, ProjectError

if TYPE_CHECKING:
    import numpy as np


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--model", required=True, metavar="A,B", help="two models")
    parser.add_argument("-i", "--input", action="append", default=[], metavar="[NAME:]FILE")
    digits = ("-c", "--compare_digits", "--compare-digits")
    parser.add_argument(*digits, type=int, default=5, metavar="N", help="decimals compared, 5")
    code_trust.arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.run import feeds_of, files_of
    from npumake.runtime.fitted import fitted_feeds
    from npumake.runtime.timing import noise

    files = [Path(name) for name in arguments.model.split(",") if name]
    if len(files) != 2:
        raise ProjectError(f"{len(files)} models, not two", "--model", "write  -m a.onnx,b.onnx")
    first, second = (code_trust.session(arguments, file) for file in files)
    if first.output_names != second.output_names:
        message = "the models have different outputs: they are not stages of one pipeline"
        raise ProjectError(message, "--model", f"{first.output_names} and {second.output_names}")
    ports = {p.name: p for p in (*second.get_inputs(), *first.get_inputs())}
    feeds = noise(tuple(ports.values()))
    input_files = [
        text.replace(":", "=", 1) for argument in arguments.input for text in argument.split(",")
    ]
    if input_files:
        feeds |= feeds_of(first, files_of(input_files, first.input_names), None)
    outputs = [
        session.run(None, fitted_feeds(session.offset(feeds, 128), session.get_inputs()))
        for session in (first, second)
    ]
    compared = list(zip(first.output_names, *outputs, strict=True))
    if all(file.suffix == ".onnx" for file in files):
        _print_cosines(compared)
        return 0
    agreements = [_print_agreement(name, a, b, arguments.compare_digits) for name, a, b in compared]
    if not all(agreements):
        raise GateError("the outputs of the two models differ", arguments.model)
    return 0


def _print_cosines(compared: list[tuple[str, np.ndarray, np.ndarray]]) -> None:
    from npumake.kernels.measure import agreement

    print("TensorName CosineSimilarity")
    for name, first, second in compared:
        print(f"{name} {agreement(first, second).cosine:.6f}")


def _print_agreement(name: str, first: np.ndarray, second: np.ndarray, digits: int) -> bool:
    """Prints one line; returns whether the outputs agree."""
    import numpy as np

    wide, reference = first.astype(np.float64), second.astype(np.float64)
    difference = np.abs(wide - reference)
    mismatches = int((difference >= 0.5 * 10.0**-digits).sum())
    worst = float(difference.max(initial=0.0))
    relative = float((difference / np.maximum(np.abs(reference), 1e-12)).max(initial=0.0))
    verdict = "consistent" if not mismatches else "not consistent"
    print(f"{name}: {verdict}, {mismatches} mismatches, max error {worst:g}, relative {relative:g}")
    return not mismatches
