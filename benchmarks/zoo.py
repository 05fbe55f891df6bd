"""Builds the blocks of tests/blocks for every kind of target and prints a table.

    python benchmarks/zoo.py [--blocks vit gpt] [--targets tflite] [--method max]

A row has the largest float error of `original_float` and `optimized_float` beside onnxruntime on
the given model (of an output's largest magnitude), the error of `quantized` and of onnxruntime's
quantize_static on the same samples (of an output's standard deviation, for the output where ours is
furthest behind), and what became of the compiled file: `right` by the build's own check, or the
error. `behind` marks an output that quantize_static keeps better by more than the slack of
tests/blocks/projects.py, `float` a float stage beyond its bound.

Measured with `--targets tflite onnx rdk-x5 ara240 ethos-u55-128 openvino-cpu`, part by part
(`--blocks`): the error of int8, ours / quantize_static. Each compiled file was right but for `r`:
refused by name (GridSample, GatherElements, Mod). `b` is behind, for the reasons in
tests/blocks/table.py. `-` was not measured.

block            tflite        onnx          rdk-x5        ara240        ethos-u55-128 openvino-cpu
vit_fused        .0831/.0859   .0835/.0859   .1136/.0919b  .0835/.0859   .0831/.0859   .0835/.0859
vit_spelled      .1977/.2394   .1823/.2394   .2145/.2329   .1823/.2394   -             -
convnext         .1154/.1166   .1154/.1166   .1190/.1212   .1154/.1166   -             -
swin             .1061/.1112   .1098/.1112   .1103/.1170   .1098/.1112   -             -
segformer        .2105/.2146   .2216/.2146   .2262/.2266   .2216/.2146   -             -
mobilevit        .1021/.1048   .1005/.1048   .1315/.1493   .1005/.1048   -             -
efficientformer  .0343/.0377   .0360/.0377   .0411/.0505   .0360/.0377   -             -
detr_encoder     .1108/.1137   .1130/.1137   -             -             -             -
detr_decoder     .0723/.0739   .1235/.1257   -             -             -             -
rtdetr_decoder   .0852/.0948r  .0818/.0948   -             -             -             -
yolo11_head      .0217/.0224   .0218/.0224   -             -             -             -
yolov10_head     .0630/.0474rb .0449/.0474   -             -             .0630/.0474rb .0449/.0474
gpt              .0436/.0442   .0436/.0442   -             -             -             -
conformer        .1515/.1606   .1593/.1606   -             -             -             -
bilstm           .0147/.0147   .0147/.0147   -             -             -             -
gru              .0153/.0153   .0153/.0153   -             -             -             -
audio_conv       1.7195/1.7195 1.7195/1.7195 -             -             -             -
audio_frames     1.6722/1.6711 1.6722/1.6711 -             -             -             -
unet             .0608/.0642   .0642/.0642   -             -             -             -
super_resolution .0104/.0104   .0104/.0104   -             -             -             -
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from blocks.projects import METHOD, Judged, Project  # noqa: E402
from blocks.table import BLOCKS, TARGETS  # noqa: E402


def row(judged: Judged) -> str:
    worst_float = max(judged.floats.values(), default=float("nan"))
    pairs = [*zip(judged.quantized, judged.peer, strict=True)]
    ours, peer = max(pairs, key=lambda pair: pair[0] / pair[1], default=(float("nan"),) * 2)
    marks = ["float"] * bool(judged.float_errors()) + ["behind"] * bool(judged.outputs_behind())
    verdict = "right" if judged.refusal is None else "; ".join(str(judged.refusal).split("\n"))
    return f"{worst_float:8.0e} {ours:8.4f} {peer:8.4f}  {' '.join([*marks, verdict])}"


def measured(name: str, targets: Sequence[str], method: str) -> None:
    """Prints the rows of one block."""
    with TemporaryDirectory() as folder:
        project = Project(Path(folder, "projects", name), BLOCKS[name](), method)
        project.write(targets)
        for target in targets:
            started = time.perf_counter()
            try:
                text = row(project.judged(target))
            except Exception:  # noqa: BLE001  # a traceback is a result
                text = f"traceback\n{traceback.format_exc()}"
            seconds = time.perf_counter() - started
            print(f"{name:17} {target:14} {seconds:6.0f} s {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--blocks", nargs="*", metavar="PART", help="of the name of a block")
    parser.add_argument("--targets", nargs="*")
    parser.add_argument("--method", default=METHOD)
    given = parser.parse_args()
    os.environ.setdefault("NPUMAKE_OPENVINO_PYTHON", sys.executable)
    for name in BLOCKS:
        if not given.blocks or any(part in name for part in given.blocks):
            measured(name, given.targets or TARGETS, given.method)


if __name__ == "__main__":
    main()
