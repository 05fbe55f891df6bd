"""npumake hb_mapper: what the tool of that name does for RDK X3, X5 and Ultra, from the same YAML

example:
  npumake hb_mapper checker --model-type onnx --march bayes-e --model resnet50.onnx
  npumake hb_mapper makertbin --model-type onnx -c resnet50_config.yaml
  npumake hb_mapper makertbin --model-type onnx --fast-perf --model resnet50.onnx --march bayes-e

The .bin that a board loads is made by the vendor's tool. A .hybrid holds the same integers for
accuracy and CI.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.errors import ProjectError

if TYPE_CHECKING:
    from npumake.dialects.vendor_yaml import VendorYaml

LOGS = {name: Path(f"hb_mapper_{name}.log") for name in ("checker", "makertbin")}
TYPES = ("onnx", "caffe")
DEBUG = "model_parameters.debug_mode"
NO_BIN = "A board loads a .bin, which the vendor's hb_mapper makes. {prefix}.hybrid is not one."


def arguments(parser: argparse.ArgumentParser) -> None:
    from npumake.cli.vendors.project import allow_argument, shape_argument

    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checker = commands.add_parser("checker", help="where each node would run")
    makertbin = commands.add_parser("makertbin", help="quantize and compile a model")
    for command in (checker, makertbin):
        command.add_argument("--model-type", choices=TYPES, required=True)
        command.add_argument("--march", help="bernoulli2, bayes-e or bayes")
        command.add_argument("--proto", metavar="FILE", help="of a Caffe model")
        command.add_argument("--model", metavar="FILE", help="the float model")
        shape_argument(command, "--input-shape")
    checker.add_argument("--output", help=argparse.SUPPRESS)  # deprecated, without effect
    makertbin.add_argument("-c", "--config", type=Path, metavar="YAML")
    allow_argument(makertbin)
    makertbin.add_argument("--fast-perf", action="store_true", help="for speed alone, on noise")


def run(given: argparse.Namespace) -> int:
    from npumake.cli.vendors.log import run_logged

    with run_logged(LOGS[given.command], "hb_mapper", given.command):
        return _check(given) if given.command == "checker" else _makertbin(given)


def _makertbin(given: argparse.Namespace) -> int:
    from npumake.cli.vendors.log import logged

    logged(LOGS["makertbin"], "Start Model Convert....")
    if given.fast_perf and given.config:
        raise ProjectError("`--fast-perf` takes no YAML", "--config", "keep one of them")
    if given.fast_perf:
        return _convert_fast(given)
    if given.config is None:
        raise ProjectError("which YAML?", "--config", "or give --fast-perf and --model")
    return _convert(given)


def _check(given: argparse.Namespace) -> int:
    from npumake.cli.vendors.command import HB_MAPPER, check
    from npumake.cli.vendors.log import logged
    from npumake.dialects.drobotics.keys import MARCHES

    log = LOGS["checker"]
    logged(log, "Begin model checking....")
    code = check(given, MARCHES, Path(".hb_check/model"), log, HB_MAPPER)
    logged(log, "End model checking....")
    return code


def _convert(given: argparse.Namespace) -> int:
    """A project that speaks the dialect, in `<working_dir>/<prefix>`."""
    from npumake.cli.vendors.log import config_text, in_words_of, logged
    from npumake.cli.vendors.project import (
        laid_out,
        operators_beside,
        seen_from,
        waived,
    )
    from npumake.dialects.drobotics.dialect import translate
    from npumake.dialects.drobotics.keys import KEYS
    from npumake.dialects.drobotics.notes import notes
    from npumake.dialects.openexplorer.translation import refuse_missing_model
    from npumake.dialects.vendor_yaml import VendorYaml
    from npumake.project.vendor import lenient_config, repeat_notes

    document = lenient_config(given.config).document
    native = translate(document)  # its errors come before anything is written
    vendor = VendorYaml(document, KEYS)
    refuse_missing_model(vendor, given.model_type)
    working, prefix = _output(given.config, vendor)
    folder = working / prefix
    project = {"dialect": "hb_mapper", "config": seen_from(folder, given.config)}
    beside = {**waived(native, given.allow), **operators_beside(native, given.config, folder)}
    laid_out(folder, {**project, **beside})
    found = (*repeat_notes(document), *notes(document))
    logged(LOGS["makertbin"], config_text(document))
    logged(LOGS["makertbin"], *(f"note: {note.what} ({note.where})" for note in found))
    with in_words_of(given.config, folder):
        return _built(folder, working, prefix, bool(vendor.text(DEBUG)))


def _output(config: Path, vendor: VendorYaml) -> tuple[Path, str]:
    """working_dir, which starts at the YAML file, and the prefix."""
    working = config.parent / vendor.text("model_parameters.working_dir")
    return working, vendor.text("model_parameters.output_model_file_prefix")


def _convert_fast(given: argparse.Namespace) -> int:
    from npumake.cli.vendors.fast_perf import fast_project
    from npumake.cli.vendors.project import laid_out
    from npumake.dialects.drobotics.keys import MARCHES

    working, prefix = Path("model_output"), Path(given.model or "model").stem
    folder = working / prefix
    laid_out(folder, fast_project(given, folder, MARCHES, "O3"))
    return _built(folder, working, prefix)


def _built(folder: Path, working: Path, prefix: str, dumps: bool = False) -> int:
    from npumake.cli.vendors.command import HB_MAPPER, Product, finished
    from npumake.cli.vendors.stage_files import dump_calibration, mapper_form

    product = Product(HB_MAPPER, working, prefix, NO_BIN, LOGS["makertbin"], form=mapper_form)
    found = finished(folder, product)
    if dumps:
        dump_calibration(found, working)
    return 0
