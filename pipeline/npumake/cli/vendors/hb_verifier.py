"""npumake hb_verifier: whether two models of one pipeline give the same, as hb_compile's tool tells

example:
  npumake hb_verifier -m m_optimized_float_model.onnx,m_ptq_model.onnx -i sample.npy
  npumake hb_verifier -m m_ptq_model.onnx,m.hybrid -i data:sample.npy -c 5

Two .onnx are compared by the cosine of their outputs. Beside a .hybrid the values must agree to so
many decimals. Without -i the inputs are noise. exit codes: 0 the same, 6 not
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


def run(given: argparse.Namespace) -> int:
    from npumake.cli.run import feeds_of, files_of
    from npumake.runtime.fitted import fitted_feeds
    from npumake.runtime.timing import noise

    files = [Path(name) for name in given.model.split(",") if name]
    if len(files) != 2:
        raise ProjectError(f"{len(files)} models, not two", "--model", "write  -m a.onnx,b.onnx")
    one, other = (code_trust.session(given, file) for file in files)
    if one.output_names != other.output_names:
        message = "the two models have other outputs: they are not of one pipeline"
        raise ProjectError(message, "--model", f"{one.output_names} and {other.output_names}")
    ports = {p.name: p for p in (*other.get_inputs(), *one.get_inputs())}
    feeds = noise(tuple(ports.values()))
    named = [text.replace(":", "=", 1) for argument in given.input for text in argument.split(",")]
    if named:
        feeds |= feeds_of(one, files_of(named, one.input_names), None)
    made = [
        session.run(None, fitted_feeds(session.offset(feeds, 128), session.get_inputs()))
        for session in (one, other)
    ]
    compared = list(zip(one.output_names, *made, strict=True))
    if all(file.suffix == ".onnx" for file in files):
        _tell_cosines(compared)
        return 0
    same = [_is_told_equal(name, a, b, given.compare_digits) for name, a, b in compared]
    if not all(same):
        raise GateError("the two models do not give the same", given.model)
    return 0


def _tell_cosines(compared: list[tuple[str, np.ndarray, np.ndarray]]) -> None:
    from npumake.kernels.measure import agreement

    print("TensorName CosineSimilarity")
    for name, one, other in compared:
        print(f"{name} {agreement(one, other).cosine:.6f}")


def _is_told_equal(name: str, one: np.ndarray, other: np.ndarray, digits: int) -> bool:
    """A line; whether the outputs agree."""
    import numpy as np

    wide, reference = one.astype(np.float64), other.astype(np.float64)
    difference = np.abs(wide - reference)
    mismatches = int((difference >= 0.5 * 10.0**-digits).sum())
    worst = float(difference.max(initial=0.0))
    relative = float((difference / np.maximum(np.abs(reference), 1e-12)).max(initial=0.0))
    verdict = "consistent" if not mismatches else "not consistent"
    print(f"{name}: {verdict}, {mismatches} mismatches, max error {worst:g}, relative {relative:g}")
    return not mismatches
