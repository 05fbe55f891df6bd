"""`.toy` files: JSON with the size of a picture and the weights of 1x1 convolutions."""

from __future__ import annotations

import json

from npumake.frontends.model_file import ModelFile
from npumake.graph import Graph, parse_text


def read_toy(file: ModelFile) -> Graph:
    """{"size": 8, "weights": [[1.0], [0.5]]}: a layer is a Conv of one weight and a Relu."""
    network = json.loads(file.data)
    size, weights = network["size"], network["weights"]
    lines = []
    for index, kernel in enumerate(weights):
        x = f"y{index - 1}" if index else "image"
        y = f"y{index}" if index + 1 < len(weights) else "scores"
        values = ", ".join(map(str, kernel))
        lines.append(f"w{index} = Constant<value: tensor = float[1,1,1,1] {{{values}}}>()")
        lines.append(f"z{index} = Conv({x}, w{index})")
        lines.append(f"{y} = Relu(z{index})")
    side = f"float[1,1,{size},{size}]"
    body = "\n  ".join(lines)
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    return parse_text(f"{header}\ntoy ({side} image) => ({side} scores) {{\n  {body}\n}}\n")
