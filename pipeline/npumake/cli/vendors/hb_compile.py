"""npumake hb_compile: the vendor's command for the nash chips, with the same YAML

example:
  npumake hb_compile -c resnet50_config.yaml
  npumake hb_compile -c resnet50_config.yaml --skip compile
  npumake hb_compile --fast-perf -m resnet50.onnx --march nash-e
  npumake hb_compile -m resnet50.onnx --march nash-e        # the unit of each node

Only the vendor's tool writes the .hbm that a board loads. A .hybrid holds the same integers for
accuracy and CI.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from npumake.errors import ProjectError

NO_HBM = "A board loads a .hbm, written by the vendor's hb_compile. {prefix}.hybrid is not one."

LOG = Path("hb_compile.log")
DEBUG = "model_parameters.debug_mode"

# --skip → the stages that do not run: compilation, and the reports that need its result
SKIPPED_STAGES = {
    "export": ("compiled", "compiled_check", "comparison"),
    "convert": ("compiled", "compiled_check", "comparison"),
    "compile": ("compiled", "compiled_check"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    from npumake.cli.vendors.project import allow_argument, shape_argument

    parser.add_argument("-c", "--config", type=Path, metavar="YAML")
    parser.add_argument("-m", "--model", metavar="FILE", help="the float model")
    parser.add_argument("--proto", metavar="FILE", help="of a Caffe model")
    parser.add_argument("--march", help="nash-e, nash-m and other nash chips")
    shape_argument(parser, "-i", "--input-shape")
    parser.add_argument(
        "--fast-perf", action="store_true", help="optimize for speed only; calibrate on noise"
    )
    cores = "1 on nash-b, -e and -m"
    parser.add_argument("--core-num", type=int, choices=range(1, 5), default=1, help=cores)
    allow_argument(parser)
    parser.add_argument("--skip", choices=SKIPPED_STAGES, help="stop before this stage")


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.vendors.log import logging_run

    with logging_run(LOG, "hb_compile"):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.config and (arguments.fast_perf or arguments.model):
        message = "the YAML already names a model"
        raise ProjectError(message, "--config", "give either -c, or -m with or without --fast-perf")
    if arguments.config:
        return _convert(arguments)
    _check_march(arguments)
    return _convert_fast(arguments) if arguments.fast_perf else _check(arguments)


def _check_march(arguments: argparse.Namespace) -> None:
    """Raises ProjectError for more cores than a march has; notes a march without public figures."""
    from npumake.dialects.horizon.keys import PLANNED_AS
    from npumake.dialects.horizon.rules import max_cores

    if arguments.march and arguments.core_num > max_cores(arguments.march):
        message = f"{arguments.march} runs a model on one core"
        raise ProjectError(message, "--core-num", "leave it out")
    if arguments.march in PLANNED_AS:
        planned_chip = PLANNED_AS[arguments.march]
        _note(f"`{arguments.march}` has no public figures: it is planned as {planned_chip}")


def _note(text: str) -> None:
    from npumake.cli.screen import SCREEN
    from npumake.cli.vendors.log import append_log

    SCREEN.line(f"note: {text}")
    append_log(LOG, f"note: {text}")


def _convert(arguments: argparse.Namespace) -> int:
    """Builds a project in this dialect in `<working_dir>/<prefix>`."""
    from npumake.cli.vendors.log import append_log, worded_as
    from npumake.cli.vendors.vendor_file import read_vendor_file
    from npumake.dialects.horizon.dialect import HB_COMPILE
    from npumake.dialects.horizon.keys import KEYS

    file = read_vendor_file(arguments.config, HB_COMPILE, KEYS)
    append_log(LOG, *file.write_project("hb_compile", arguments.allow))
    with worded_as(arguments.config, file.folder):
        dumps = bool(file.vendor.text(DEBUG))
        return _build(file.folder, file.working, file.prefix, arguments.skip, dumps)


def _check(arguments: argparse.Namespace) -> int:
    from npumake.cli.vendors.command import HB_COMPILE, check
    from npumake.dialects.horizon.keys import MARCHES

    return check(arguments, MARCHES, Path(".hb_compile/model"), LOG, HB_COMPILE)


def _convert_fast(arguments: argparse.Namespace) -> int:
    from npumake.cli.vendors.fast_perf import fast_project
    from npumake.cli.vendors.project import write_project
    from npumake.dialects.horizon.keys import MARCHES

    working, prefix = Path("model_output"), Path(arguments.model or "model").stem
    folder = working / prefix
    write_project(folder, fast_project(arguments, folder, MARCHES, "O2"))
    return _build(folder, working, prefix, arguments.skip)


def _build(folder: Path, working: Path, prefix: str, skip: str | None, dumps: bool = False) -> int:
    from npumake.cache.publish import replacing
    from npumake.cli.vendors.command import FILES, HB_COMPILE, Product, build_product
    from npumake.cli.vendors.stage_files import compile_form, dump_calibration

    files = {**FILES, "quantized": "{prefix}_ptq_model.onnx"}
    skipped = SKIPPED_STAGES.get(skip or "", ())
    last = f"Skipped from `{skip}` on: there is no .hybrid." if skipped else NO_HBM
    product = Product(HB_COMPILE, working, prefix, last, LOG, files, skipped, compile_form)
    project_build = build_product(folder, product)
    if dumps:
        dump_calibration(project_build, working)
    with replacing(working / LOG) as temporary:
        shutil.copyfile(LOG, temporary)
    return 0
