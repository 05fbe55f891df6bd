"""npumake hb_compile: what the tool of that name does for the nash chips, from the same YAML

example:
  npumake hb_compile -c resnet50_config.yaml
  npumake hb_compile -c resnet50_config.yaml --skip compile
  npumake hb_compile --fast-perf -m resnet50.onnx --march nash-e
  npumake hb_compile -m resnet50.onnx --march nash-e        # where each node would run

The .hbm that a board loads is made by the vendor's tool. A .hybrid holds the same integers for
accuracy and CI.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from npumake.errors import ProjectError

NO_HBM = "A board loads a .hbm, which the vendor's hb_compile makes. {prefix}.hybrid is not one."

LOG = Path("hb_compile.log")
DEBUG = "model_parameters.debug_mode"

# --skip → the stages that are not run: what the vendor compiles to HBIR, and what it tells of that
SKIPPED = {
    "export": ("compiled", "compiled_check", "comparison"),
    "convert": ("compiled", "compiled_check", "comparison"),
    "compile": ("compiled", "compiled_check"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    from npumake.cli.vendors.project import allow_argument, shape_argument

    parser.add_argument("-c", "--config", type=Path, metavar="YAML")
    parser.add_argument("-m", "--model", metavar="FILE", help="the float model")
    parser.add_argument("--proto", metavar="FILE", help="of a Caffe model")
    parser.add_argument("--march", help="nash-e, nash-m and their kin")
    shape_argument(parser, "-i", "--input-shape")
    parser.add_argument("--fast-perf", action="store_true", help="for speed alone, on noise")
    cores = "1 on nash-b, -e and -m"
    parser.add_argument("--core-num", type=int, choices=range(1, 5), default=1, help=cores)
    allow_argument(parser)
    parser.add_argument("--skip", choices=SKIPPED, help="stop before this stage")


def run(given: argparse.Namespace) -> int:
    from npumake.cli.vendors.log import run_logged

    with run_logged(LOG, "hb_compile"):
        return _run(given)


def _run(given: argparse.Namespace) -> int:
    if given.config and (given.fast_perf or given.model):
        message = "a YAML names its model itself"
        raise ProjectError(message, "--config", "give either -c, or -m with or without --fast-perf")
    if given.config:
        return _convert(given)
    _check_march(given)
    return _convert_fast(given) if given.fast_perf else _check(given)


def _check_march(given: argparse.Namespace) -> None:
    """Raises ProjectError for more cores than a march has; tells of one of a known name alone."""
    from npumake.dialects.horizon.keys import KIN
    from npumake.dialects.horizon.rules import most_cores

    if given.march and given.core_num > most_cores(given.march):
        message = f"{given.march} runs a model on one core"
        raise ProjectError(message, "--core-num", "leave it out")
    if given.march in KIN:
        kin = KIN[given.march]
        _note(f"of `{given.march}` no more than the name is known: it is planned as {kin}")


def _note(what: str) -> None:
    from npumake.cli.screen import SCREEN
    from npumake.cli.vendors.log import logged

    SCREEN.line(f"note: {what}")
    logged(LOG, f"note: {what}")


def _convert(given: argparse.Namespace) -> int:
    """A project that speaks the dialect, in `<working_dir>/<prefix>`."""
    from npumake.cli.vendors.log import config_text, in_words_of, logged
    from npumake.cli.vendors.project import (
        laid_out,
        operators_beside,
        seen_from,
        waived,
    )
    from npumake.dialects.horizon.config_file import read_config
    from npumake.dialects.horizon.dialect import translate
    from npumake.dialects.horizon.keys import KEYS
    from npumake.dialects.horizon.notes import notes
    from npumake.dialects.vendor_yaml import VendorYaml
    from npumake.project.vendor import repeat_notes

    document = read_config(given.config).document
    native = translate(document)  # its errors come before anything is written
    vendor = VendorYaml(document, KEYS)
    working = given.config.parent / vendor.text("model_parameters.working_dir")
    prefix = vendor.text("model_parameters.output_model_file_prefix")
    folder = working / prefix
    project = {"dialect": "hb_compile", "config": seen_from(folder, given.config)}
    beside = {**waived(native, given.allow), **operators_beside(native, given.config, folder)}
    laid_out(folder, {**project, **beside})
    found = (*repeat_notes(document), *notes(document))
    logged(LOG, config_text(document))
    logged(LOG, *(f"note: {note.what} ({note.where})" for note in found))
    with in_words_of(given.config, folder):
        return _built(folder, working, prefix, given.skip, bool(vendor.text(DEBUG)))


def _check(given: argparse.Namespace) -> int:
    from npumake.cli.vendors.command import HB_COMPILE, check
    from npumake.dialects.horizon.keys import MARCHES

    return check(given, MARCHES, Path(".hb_compile/model"), LOG, HB_COMPILE)


def _convert_fast(given: argparse.Namespace) -> int:
    from npumake.cli.vendors.fast_perf import fast_project
    from npumake.cli.vendors.project import laid_out
    from npumake.dialects.horizon.keys import MARCHES

    working, prefix = Path("model_output"), Path(given.model or "model").stem
    folder = working / prefix
    laid_out(folder, fast_project(given, folder, MARCHES, "O2"))
    return _built(folder, working, prefix, given.skip)


def _built(folder: Path, working: Path, prefix: str, skip: str | None, dumps: bool = False) -> int:
    from npumake.cache.publish import replacing
    from npumake.cli.vendors.command import FILES, HB_COMPILE, Product, finished
    from npumake.cli.vendors.stage_files import compile_form, dump_calibration

    files = {**FILES, "quantized": "{prefix}_ptq_model.onnx"}
    skipped = SKIPPED.get(skip or "", ())
    last = f"Skipped from `{skip}` on: there is no .hybrid." if skipped else NO_HBM
    product = Product(HB_COMPILE, working, prefix, last, LOG, files, skipped, compile_form)
    found = finished(folder, product)
    if dumps:
        dump_calibration(found, working)
    with replacing(working / LOG) as temporary:
        shutil.copyfile(LOG, temporary)
    return 0
