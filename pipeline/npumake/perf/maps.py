"""DDR traffic: the bytes that each instruction loads and stores.

    a tensor across a subgraph's border      goes through DDR in full, once per reader
    a tensor inside a subgraph               the part beyond the on-chip memory goes out and back
    a tensor passed on                       stays on the chip: readers take it as it is computed
    constants                                load once per frame, at their size in the bundle

Passed on are: results that only pointwise steps right behind read; tensors inside another one
(slices, operands of a Concat, reshapes); transposes of outputs; int32 sums of a Conv; and pictures,
which the first Conv reads line by line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from npumake.bundle.memory import tensor_bytes
from npumake.bundle.program import SUMS, Instruction, Program

POINTWISE = frozenset(
    {"add", "add_twice", "div", "lookup", "maximum", "minimum", "mul", "prelu", "prelu_twice"}
    | {"rescale"}
)
MAX_STEPS_BEHIND = 2  # steps: e.g. a lookup table and the product with its input
MAX_PICTURE_CHANNELS = 4  # channels at most


@dataclass(frozen=True)
class Maps:
    """`numbers` gives the subgraph by instruction index. `on_chip` is how many bytes of a tensor
    stay on the chip; if None, all go through DDR. Inputs in `nv12` arrive in half the bytes that
    the program reads."""

    program: Program
    numbers: Mapping[int, int]
    on_chip: int | None
    nv12: frozenset[str] = field(default_factory=frozenset)

    def loaded(self, index: int) -> int:
        """Bytes loaded, without constants."""
        names = dict.fromkeys(self.program.instructions[index].inputs)
        return sum(self._loads(name, index) for name in names)

    def stored(self, index: int) -> int:
        number = self.numbers[index]
        return sum(
            self._inner(name) if self._stays_inside(name, number) else self._size(name)
            for name in self.program.instructions[index].outputs
        )

    def _loads(self, name: str, index: int) -> int:
        maker = self._makers.get(name)
        if maker is None or self.numbers.get(maker) != self.numbers[index]:
            return self._size(name) // (2 if self._source(name) in self.nv12 else 1)
        first = self.on_chip is None or self._readers.get(name, [index])[0] == index
        return self._inner(name) if first else 0

    def _source(self, name: str) -> str:
        """The model input behind a quantize step; else the tensor itself."""
        maker = self._makers.get(name)
        step = None if maker is None else self.program.instructions[maker]
        return step.inputs[0] if step is not None and step.op == "quantize" else name

    def _stays_inside(self, name: str, number: int) -> bool:
        readers = self._readers.get(name, ())
        return name not in self.program.outputs and all(
            self.numbers.get(index) == number for index in readers
        )

    def _inner(self, name: str) -> int:
        """DDR bytes, each way, of a tensor inside one subgraph."""
        if self.on_chip is None:
            return self._size(name)
        return 0 if self._is_passed_on(name) else max(0, self._size(name) - self.on_chip)

    def _is_passed_on(self, name: str) -> bool:
        tensor, maker = self.program.tensors[name], self._makers[name]
        readers = [
            (index, self.program.instructions[index]) for index in self._readers.get(name, ())
        ]
        if tensor.dtype == SUMS or self.program.instructions[maker].op in ("slice", "reshape"):
            return True
        if len(tensor.shape) == 4 and tensor.shape[1] <= MAX_PICTURE_CHANNELS:
            return True
        if all(step.op in ("reshape", "transpose") and self._goes_out(step) for _, step in readers):
            return True
        if len(readers) == 1 and readers[0][1].op == "concat":
            return True
        return all(
            step.op in POINTWISE and index - maker <= MAX_STEPS_BEHIND for index, step in readers
        )

    def _goes_out(self, step: Instruction) -> bool:
        """Whether no layer on the unit reads the step's outputs."""
        readers = (index for name in step.outputs for index in self._readers.get(name, ()))
        return all(index not in self.numbers for index in readers)

    def _size(self, name: str) -> int:
        return tensor_bytes(self.program.tensors[name])

    @cached_property
    def _makers(self) -> Mapping[str, int]:
        steps = enumerate(self.program.instructions)
        return {name: index for index, step in steps for name in step.outputs}

    @cached_property
    def _readers(self) -> Mapping[str, list[int]]:
        """Tensor -> indices of its readers, in order; unused steps do not count."""
        readers: dict[str, list[int]] = {}
        needed = set(self.program.outputs)
        for index, step in reversed(list(enumerate(self.program.instructions))):
            if needed.isdisjoint(step.outputs):
                continue
            for name in dict.fromkeys(step.inputs):
                readers.setdefault(name, []).insert(0, index)
                needed.add(name)
        return readers


def constant_bytes(step: Instruction) -> int:
    return sum(values.nbytes for values in step.constants.values())
