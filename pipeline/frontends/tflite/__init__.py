"""TensorFlow Lite, float and pre-quantized, as a graph: float values, Q/DQ on the file's grids.

    flatbuffer   bytes → tables, every read checked      schema      tables → tensors, operators
    draft        the graph being drawn, two layouts      operators   the table: operator → drawer

The interface is the file's, in float: names, shapes, NHWC. Quantized inputs and outputs are real
numbers, on either side of their Q/DQ. It refuses to know the project, and trusts no byte.
"""

from pipeline.errors import GraphError
from pipeline.frontends.tflite.detections import without_postprocessor
from pipeline.frontends.tflite.draft import Draft
from pipeline.frontends.tflite.flatbuffer import MalformedError
from pipeline.frontends.tflite.operators import OPERATORS
from pipeline.frontends.tflite.schema import read_network
from pipeline.graph import Graph


def parse_tflite(data: bytes, name: str) -> Graph:
    """The graph in a .tflite file called `name`. Raises GraphError."""
    try:
        network = without_postprocessor(read_network(data))
        unknown = {operator.type for operator in network.operators} - OPERATORS.keys()
        if unknown:
            raise GraphError(f"no frontend knows the operators {', '.join(sorted(unknown))}", name)
        draft = Draft(network, room=64 * len(data) + (1 << 20))
        for operator in network.operators:
            OPERATORS[operator.type](draft, operator)
        return draft.finished(network.outputs)
    except MalformedError as error:
        raise GraphError(f"not a TFLite model that can be read: {error}", name) from error
    except GraphError as error:
        error.where = error.where or name
        raise
