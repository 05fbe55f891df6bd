"""npumake synap: the commands of SyNAP's toolkit

example:
  npumake synap convert --model mobilenet.tflite --target SL1680 --out-dir out
  npumake synap convert --model net.onnx --meta net.yaml --target VS680 --out-dir out
  npumake synap image_to_raw -i face.jpg -o .nv12 -s 640x480
  npumake synap image_from_raw -i face_640x480.nv12 -o .png
  synap_cli_od -m model.synap face.jpg | npumake synap image_od -i face.jpg -o found.png
"""

from __future__ import annotations

import argparse

from npumake.cli.vendors import synap_convert, synap_images


def arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    synap_convert.add(commands)
    synap_images.add(commands)
    commands.add_parser("help", help="show this help").set_defaults(
        act=lambda _: print(parser.format_help(), end="")
    )


def run(arguments: argparse.Namespace) -> int:
    return int(arguments.act(arguments) or 0)
