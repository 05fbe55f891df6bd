"""The model's inputs by name, also where the graph has planes in their place."""

from __future__ import annotations

from collections.abc import Mapping

from npumake.borders.images import model_order, trained_shapes
from npumake.data.formats import InputSpec
from npumake.data.input_samples import ModelInput
from npumake.graph import Graph, dtype, shape
from npumake.project.feeding import feeding
from npumake.project.names import entries
from npumake.project.sections import Input


def model_inputs(graph: Graph, inputs: Mapping[str, Input]) -> dict[str, ModelInput]:
    """The model's inputs, in the model's order.

    `inputs` is the section of the YAML. Raises ProjectError as `feeding` does.
    """
    types = {str(value.name): dtype(value) for value in graph.inputs}
    shapes = {str(value.name): shape(value) for value in graph.inputs}
    shapes.update(trained_shapes(graph))
    order = model_order(graph)
    sections = {name: inputs[key] for name, key in entries(inputs, order).items()}
    forms = {name: feeding(name, sections.get(name, Input()), shapes[name]) for name in order}
    return {
        name: ModelInput(
            name,
            sections.get(name, Input()),
            form,
            InputSpec(form.shape, types[form.inputs(name)[0]], form.offset),
        )
        for name, form in forms.items()
    }
