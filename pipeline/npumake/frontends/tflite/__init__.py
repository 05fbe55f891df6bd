"""TensorFlow Lite, float and quantized, as a float graph with Q/DQ on the file's grids.

    flatbuffer   bytes → tables, with bounds checks      schema      tables → tensors, operators
    constants    folds constants                         operators   operator → translation
    draft        the graph under construction, in two layouts

The interface is the file's, in float: names, shapes, NHWC. Quantized inputs and outputs are floats
outside their Q/DQ. This room does not know the project, and trusts no byte.
"""

from npumake.errors import GraphError
from npumake.frontends.model_file import Ends
from npumake.frontends.tflite.constants import folded
from npumake.frontends.tflite.detections import without_postprocessor
from npumake.frontends.tflite.draft import GraphDraft
from npumake.frontends.tflite.ends import between
from npumake.frontends.tflite.flatbuffer import MalformedError
from npumake.frontends.tflite.operators import OPERATORS
from npumake.frontends.tflite.schema import TFLiteTensor, read_network
from npumake.graph import Graph, number_operators

WHOLE_MODEL = Ends()


def parse_tflite(data: bytes, name: str, ends: Ends = WHOLE_MODEL) -> Graph:
    """The graph of a .tflite file called `name`, between the `ends`. Raises GraphError."""
    try:
        file = read_network(data)
        network = between(folded(without_postprocessor(file)), *ends)
        unknown = {operator.type for operator in network.operators} - OPERATORS.keys()
        if unknown:
            raise GraphError(f"no support for the operators {', '.join(sorted(unknown))}", name)
        for tensor in network.inputs:
            _refuse_open(tensor)
        draft = GraphDraft(network, room=64 * len(data) + (1 << 20))
        nodes_by_outputs: dict[tuple[TFLiteTensor, ...], list[str]] = {}
        for operator in network.operators:
            before = len(draft.node_names)
            OPERATORS[operator.type](draft, operator)
            nodes_by_outputs[operator.outputs] = draft.node_names[before:]
        graph = draft.finished(network.outputs)
        number_operators(
            graph, [nodes_by_outputs.get(entry.outputs, []) for entry in file.operators]
        )
        return graph
    except MalformedError as error:
        raise GraphError(f"not a TFLite model that can be read: {error}", name) from error
    except GraphError as error:
        error.where = error.where or name
        raise


def _refuse_open(tensor: TFLiteTensor) -> None:
    """An open axis is 1 in the file. That is right for a batch; for the size of an image or a sound
    all later shapes would be wrong. Raises GraphError."""
    beyond = [axis for axis in tensor.left_open if axis and tensor.shape[axis : axis + 1] == (1,)]
    if beyond:
        shape = [-1 if axis in tensor.left_open else n for axis, n in enumerate(tensor.shape)]
        message = f"input `{tensor.name}` leaves its size open: {shape}"
        raise GraphError(message, hint="convert the model with its actual input size")
