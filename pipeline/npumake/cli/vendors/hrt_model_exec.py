"""npumake hrt_model_exec: what the tool of that name does on a board, here and in exact integers

example:
  npumake hrt_model_exec model_info --model_file m.hybrid
  npumake hrt_model_exec perf --model_file m.hybrid --model_name="" --frame_count=200
  npumake hrt_model_exec infer --model_file m.hybrid --input_file cat.jpg --enable_dump=true

The same as `npumake info`, `bench` and `run`; the times are of this machine. With --enable_dump
the outputs are in <model>_infer_dump.npz.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from npumake.cli import code_trust
from npumake.errors import ProjectError

# Of the board alone: accepted, and without effect here.
BOARD = (
    *("core_id", "roi", "roi_infer", "dump_intermediate", "dump_precision", "dump_format"),
    *("hybrid_dequantize_process", "dump_txt_axis", "enable_cls_post_process"),
)
TIMED = ("frame_count", "perf_time", "thread_num", "profile_path")


def arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_text in (
        ("model_info", "what a model is fed and gives"),
        ("infer", "files through a model"),
        ("perf", "how fast a model runs here"),
    ):
        command = commands.add_parser(name, help=help_text)
        command.add_argument("--model_file", type=Path, required=True, metavar="MODEL")
        command.add_argument("--model_name", default="", metavar="NAME")
        command.add_argument("--input_file", default="", metavar="A,B", help="one per input")
        command.add_argument("--enable_dump", default="false", metavar="true|false")
        for option in TIMED:
            command.add_argument(f"--{option}", metavar="N")
        for option in BOARD:
            command.add_argument(f"--{option}", help=argparse.SUPPRESS)
        code_trust.arguments(command)


def run(given: argparse.Namespace) -> int:
    from npumake.cli.main import main

    for name in BOARD:
        if getattr(given, name) not in (None, "0", "false"):
            print(f"note: --{name} is ignored: it is of the board")
    called = ["-m", given.model_name] if given.model_name else []
    if given.command == "model_info":
        return main(["info", str(given.model_file), *called])
    if given.command == "perf":
        timed = [f"--{name}={value}" for name in TIMED if (value := getattr(given, name))]
        return main(["bench", str(given.model_file), *called, *timed, *_trusted(given)])
    return main(["run", str(given.model_file), *called, *_inputs(given), *_trusted(given)])


def _trusted(given: argparse.Namespace) -> list[str]:
    operators = [f"--operators={file}" for file in getattr(given, "operators", None) or ()]
    return [*operators, *(["--allow-code"] if getattr(given, "allow_code", False) else [])]


def _inputs(given: argparse.Namespace) -> list[str]:
    """The files in the order of the inputs. Raises ProjectError for none, or too many."""
    files = [file for file in given.input_file.split(",") if file]
    if not files:
        raise ProjectError("which files?", "--input_file", "one per input, divided by commas")
    flags = [f"--input={file}" for file in files]
    if len(files) > 1:
        names = code_trust.session(given, given.model_file, given.model_name or None).input_names
        if len(names) != len(files):
            message = f"{len(files)} files for {len(names)} inputs"
            raise ProjectError(message, "--input_file", "one per input: " + ", ".join(names))
        flags = [f"--input={name}={file}" for name, file in zip(names, files, strict=True)]
    if given.enable_dump.lower() in ("true", "1"):
        flags.append(f"--save={given.model_file.stem}_infer_dump.npz")
    return flags
