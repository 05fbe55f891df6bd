"""The inputs of the model, by name, though the graph may have planes in their place."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.data.formats import Taken
from pipeline.data.given import ModelInput
from pipeline.graph import Graph, dtype, shape
from pipeline.project.feeding import feeding
from pipeline.project.names import entries
from pipeline.project.sections import Input
from pipeline.quant.images import trained_shapes


def model_inputs(graph: Graph, inputs: Mapping[str, Input]) -> dict[str, ModelInput]:
    """Those fed in another form first, then the others in the order of the graph.

    `inputs` are what the YAML says of them, by name or as `*`. Raises ProjectError as `feeding`.
    """
    shapes = dict(trained_shapes(graph))
    types = {str(value.name): dtype(value) for value in graph.inputs}
    keys = entries(inputs, [*shapes, *types])
    said = {name: inputs[key] for name, key in keys.items()}
    forms = {name: feeding(name, said.get(name, Input()), shapes[name]) for name in shapes}
    planes = {plane for name, form in forms.items() for plane in form.inputs(name)}
    for value in graph.inputs:
        if (name := str(value.name)) not in planes:
            forms[name] = feeding(name, said.get(name, Input()), shape(value))
    return {
        name: ModelInput(
            name,
            said.get(name, Input()),
            form,
            Taken(form.shape, types[form.inputs(name)[0]], form.offset),
        )
        for name, form in forms.items()
    }
