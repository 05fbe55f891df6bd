"""Small models with the inputs and outputs of real ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from npumake.graph import parse_text
from npumake.recognition.facts import ModelFacts, facts_of

Shape = tuple[int, ...]


def sizes(shape: Shape) -> str:
    return ",".join(map(str, shape))


def facts(
    picture: Shape,
    outputs: Mapping[str, Shape],
    notes: Mapping[str, str] | None = None,
    operators: tuple[str, ...] = (),
    file: str = "m.onnx",
) -> ModelFacts:
    """The facts of a model that fills its outputs with the mean of its picture."""
    results = ", ".join(f"float[{sizes(shape)}] {name}" for name, shape in outputs.items())
    shapes = ", ".join(
        f"int64[{len(shape)}] s_{name} = {{{sizes(shape)}}}" for name, shape in outputs.items()
    )
    body = " ".join(f"{name} = Expand(m, s_{name})" for name in outputs)
    text = f"agraph (float[{sizes(picture)}] x) => ({results}) <{shapes}>"
    graph = parse_text(f"{text} {{ m = ReduceMean<keepdims=0>(x) {body} }}")
    graph.set_metadata(notes or {})
    found = facts_of(file, b"", graph, graph)
    assert found is not None
    return replace(found, operators=found.operators | set(operators))
