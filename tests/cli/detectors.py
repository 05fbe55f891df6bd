"""A detector that finds one box in the middle of any picture, of class 1."""

from __future__ import annotations

import json

from npumake.bundle.archive import Bundle
from npumake.detection.carriers import members
from npumake.detection.metadata import read_metadata
from npumake.detection.notes import mark_metadata
from npumake.engine.lower import lowered
from npumake.graph import Graph, parse_text

# Center and size in pixels of 64x32.
DETECTOR = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[1,3,32,64] x) => (float[1,6,1] out)
    <float[1,6,1] box = {32, 16, 32, 8, 0.1, 0.9}, float none = {0}> {
    mean = ReduceMean<axes = [1, 2, 3], keepdims = 1>(x)
    row = Flatten(mean)  nothing = Mul(row, none)  out = Add(box, nothing) }"""
SAID = {
    "schema_version": 2,
    "dataset": {"classes": ["disc", "star"]},
    "input": {"shape": [1, 3, 32, 64]},
    "outputs": [
        {
            "name": "out",
            "type": "detection",
            "encoding": "direct",
            "normalized": False,
            "shape": [1, 6, 1],
            "dshape": [{"batch": 1}, {"num_features": 6}, {"num_boxes": 1}],
        }
    ],
}


def detector() -> Graph:
    graph = parse_text(DETECTOR)
    mark_metadata(graph, read_metadata(json.dumps(SAID), "said"))
    return graph


def compiled_detector() -> Bundle:
    said = read_metadata(json.dumps(SAID), "said")
    program = lowered(detector(), "half_even")
    return Bundle("rdk-x5", program, {}, beside=members(said, said.classes))
