"""A case as a build makes it: the stages from the trained model to the compiled file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np
import onnx

from npumake.bundle.program import Instruction, Program
from npumake.compilers.tflite import drawing, tflite_file
from npumake.compilers.tflite_builder import Order
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds, OrtSession
from npumake.engine.port import Port
from npumake.engine.reference import ReferenceSession
from npumake.engine.tflite_rules import TWICE
from npumake.graph import Graph, Node, origin, parse, shape, upgraded
from npumake.graph.qdq import QDQ_OPERATORS
from npumake.passes import optimized
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target
from npumake.targets.target import Target
from operators.case import BEHIND, FRONT, Case

Width = Literal["int8", "int16"]
TYPES = {"int8": Quantization(), "int16": Quantization(types={"*": "int16"})}
ROUNDINGS = ("half_even", "half_up", "half_away", "twice")
# Instructions that bring a value onto a grid or off it compute no node.
BORDERS = frozenset({"constant", "dequantize", "quantize"})
SAMPLES = 2


@dataclass(frozen=True)
class Built:
    """`graph` is `quantized`, `program` the integer engine's; nodes of these names are `around` the
    operator."""

    graph: Graph
    program: Program
    target: Target
    around: frozenset[str] = frozenset()

    @cached_property
    def tflite(self) -> bytes:
        return tflite_file(self.program, self.graph)

    @cached_property
    def orders(self) -> Mapping[str, Order]:
        """By input and output, the order of the model's axes in a `.tflite`: at 64x64x64 no shape
        tells it."""
        network, program = drawing(self.program, self.graph), self.program
        names = (*program.inputs, *program.outputs)
        borders = zip(names, (*network.inputs, *network.outputs), strict=True)
        return {name: order for name, (_, order) in borders}

    def check_tflite(self) -> None:
        """Raises GraphError where TensorFlow Lite cannot hold it."""
        assert self.tflite

    def engine(self, feeds: Feeds) -> list[np.ndarray]:
        return ReferenceSession(self.program).run(None, feeds)

    @property
    def scale(self) -> float | None:
        """Of the only output; None where it is float or counts."""
        (name,) = self.program.outputs
        for step in self.program.instructions:
            if step.op == "dequantize" and step.outputs[0] == name:
                return self.program.tensors[step.inputs[0]].scale
        return self.program.tensors[name].scale

    def steps(self) -> list[Instruction]:
        """Those of the operator itself."""
        return [
            step
            for step in self.program.instructions
            if step.op not in BORDERS and self._is_own(step.origin)
        ]

    def nodes(self) -> list[Node]:
        return [
            node
            for node in self.graph.nodes()
            if node.op_type not in QDQ_OPERATORS and self._is_own(origin(node))
        ]

    def _is_own(self, names: tuple[str, ...]) -> bool:
        """Whether what computes these trained nodes computes some of the operator."""
        return not self.around.issuperset(names)


class Model:
    """A case on the way: what is fed, what onnxruntime computes of the model as it was trained."""

    def __init__(self, case: Case) -> None:
        self.case = case
        trained = case.proto().SerializeToString()
        if case.meant is not None:
            self.feeds, self.meant = [dict(case.fed)], case.meant
        else:
            session = OrtSession(trained)
            self.feeds = _drawn(session.inputs)
            (self.meant,) = session.run(None, self.feeds[0])
        self._trained = _with_output_shape(trained, self.meant.shape)
        self._quantized: list[tuple[Target, Width, Graph]] = []
        self._noisy: dict[Graph, list[np.ndarray]] = {}

    @cached_property
    def graph(self) -> Graph:
        """`optimized_float`. Raises PipelineError."""
        graph = parse(self._trained, "model.onnx").with_shapes()
        return optimized(upgraded(graph).with_shapes())

    @cached_property
    def recipe(self):
        return ranges_by_method(
            self.graph, observe(self.graph, self.feeds), Calibration("max"), False
        )

    def built(self, target: Target, width: Width = "int8") -> Built:
        """Raises PipelineError."""
        graph = self._graph(target, width)
        return Built(
            graph,
            lowered(graph, target.rounding, target.runnable),
            target,
            frozenset() if self.case.model else frozenset({FRONT, BEHIND}),
        )

    def _graph(self, target: Target, width: Width) -> Graph:
        """`quantized`, once for targets that ask for the same."""
        alike = replace(
            target, name="", vendor="", backend="hybrid", backend_options={}, vela=None, iree=None
        )
        if target.rounding != TWICE:
            alike = replace(alike, rounding="half_even")
        for known, wide, graph in self._quantized:
            if (known, wide) == (alike, width):
                return graph
        graph = quantized(calibrated_with(self.graph, self.recipe, target, TYPES[width]), target)
        self._quantized.append((alike, width, graph))
        return graph

    def noisy(self, built: Built, draws: int) -> list[np.ndarray]:
        """The output with one code of noise at every tensor, so many times."""
        if built.graph not in self._noisy:
            self._noisy[built.graph] = Noise(built.graph).draws(self.feeds[0], draws)
        return self._noisy[built.graph]


def _drawn(ports: Sequence[Port]) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    return [
        {port.name: rng.normal(0, 1, port.shape).astype(np.float32) for port in ports}
        for _ in range(SAMPLES)
    ]


def _with_output_shape(model: bytes, shape: tuple[int, ...]) -> bytes:
    """ONNX text leaves it open; what an exporter writes has it."""
    proto = onnx.load_from_string(model)
    (made,) = proto.graph.output
    type = made.type.tensor_type.elem_type
    made.CopyFrom(onnx.helper.make_tensor_value_info(made.name, type, shape))
    return proto.SerializeToString()


class Noise:
    """The quantized graph with one code up or down at every tensor in the place of a rounding.

    What that does to the output is what int8 allows: bound = max |noisy - float|."""

    def __init__(self, graph: Graph) -> None:
        proto = onnx.load_from_string(graph.to_bytes())
        self.steps: dict[str, tuple[tuple[int, ...], float]] = {}
        held = {
            tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer
        }
        shapes = {name: shape(value) for name, value in graph.values().items()}
        read, nodes = dict[str, str](), list[onnx.NodeProto]()
        for node in proto.graph.node:
            if node.op_type == "QuantizeLinear" and node.input[0] not in held:
                noise = f"noise_of_{node.output[0]}"
                read[node.output[0]] = node.input[0], noise
                self.steps[noise] = shapes[node.input[0]], float(held[node.input[1]].max())
                given = onnx.helper.make_tensor_value_info(noise, 1, self.steps[noise][0])
                proto.graph.input.append(given)
            elif node.op_type == "DequantizeLinear" and node.input[0] in read:
                nodes.append(onnx.helper.make_node("Add", read[node.input[0]], node.output))
            else:
                nodes.append(node)
        del proto.graph.node[:]
        proto.graph.node.extend(nodes)
        self.session = OrtSession(proto.SerializeToString(), fusion="floats")

    def draws(self, feeds: Feeds, count: int) -> list[np.ndarray]:
        """The only output, so many times."""
        rng, made = np.random.default_rng(5), []
        for at in range(count):
            sign = (1.0, -1.0)[at] if at < 2 else None
            noise = {
                name: (rng.uniform(-1, 1, dims) if sign is None else np.full(dims, sign)) * step
                for name, (dims, step) in self.steps.items()
            }
            given = {name: np.asarray(values, np.float32) for name, values in noise.items()}
            made += self.session.run(None, {**feeds, **given})
        return made


@cache
def hybrid(rounding: str) -> Target:
    """A chip that runs whatever has an integer kernel, with that rounding."""
    return replace(read_target("onnx"), name="hybrid", backend="hybrid", rounding=rounding)


def united(parts: Mapping[str, Built]) -> Built:
    """One model of several: the names of each with its own prefix. Nothing is shared."""
    protos = [
        onnx.compose.add_prefix(onnx.load_from_string(built.graph.to_bytes()), prefix)
        for prefix, built in parts.items()
    ]
    first = protos[0]
    newest = {o.domain: o.version for proto in protos for o in sorted(proto.opset_import, key=_age)}
    for proto in protos[1:]:
        for kind in ("node", "initializer", "input", "output", "value_info"):
            getattr(first.graph, kind).extend(getattr(proto.graph, kind))
    del first.opset_import[:]
    first.opset_import.extend(onnx.helper.make_opsetid(d, v) for d, v in newest.items())
    (target,) = {built.target.name: built.target for built in parts.values()}.values()
    graph = parse(first.SerializeToString(), "united.onnx").with_shapes()
    return Built(graph, lowered(graph, target.rounding, target.runnable), target)


def _age(opset: onnx.OperatorSetIdProto) -> int:
    return opset.version
