"""Replaces operators of a model, one by one, by others that compute the same codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npumake.compilers.flatfile import NUMBERS, Fields, FileOperator, FileTensor, FlatModel
from npumake.compilers.tflite_builder import KINDS


class Sheet:
    """The tensors of a model, and its operators after replacement."""

    def __init__(self, tensors: Sequence[FileTensor]) -> None:
        self.tensors = list(tensors)
        self.operators: list[FileOperator] = []

    def keep(self, operator: FileOperator) -> None:
        self.operators.append(operator)

    def draw(
        self, kind: str, inputs: Sequence[int], output: int, options: Fields | None = None
    ) -> int:
        """Adds an operator and returns its output."""
        version, union = KINDS[kind]
        self.keep(FileOperator(kind, tuple(inputs), (output,), version, union, options or {}))
        return output

    def like(self, index: int, shape: Sequence[int] | None = None, **changed: Any) -> int:
        """A new tensor like another, except for its shape and the fields in `changed`."""
        tensor = self.tensors[index]
        dims = tuple(tensor.shape if shape is None else shape)
        return self.add(replace(tensor, name=self._name(), shape=dims, values=None, **changed))

    def constant(self, values: np.ndarray) -> int:
        return self.add(FileTensor(self._name(), values.shape, str(values.dtype), values))

    def numbers(self, values: Sequence[int]) -> int:
        return self.constant(np.array(values, np.int32))

    def values(self, index: int) -> np.ndarray:
        values = self.tensors[index].values
        assert values is not None
        return values

    def _name(self) -> str:
        return f"spelled_{len(self.tensors)}"

    def add(self, tensor: FileTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1


Spelling = Callable[[Sheet, FileOperator], None]


def respelled(model: FlatModel, spellings: Mapping[str, Spelling]) -> FlatModel:
    """The model with the operator kinds of `spellings` replaced; inputs and outputs stay."""
    sheet = Sheet(model.tensors)
    for operator in model.operators:
        first = len(sheet.operators)
        spellings.get(operator.type, Sheet.keep)(sheet, operator)
        replacement = sheet.operators[first:]
        sheet.operators[first:] = [replace(step, node=operator.node) for step in replacement]
    return model._replace(tensors=sheet.tensors, operators=sheet.operators)


def as_numbers(sheet: Sheet, codes: int, output: int) -> None:
    """int8 codes as int32 numbers. In TensorFlow Lite a CAST would do; the TOSA converter subtracts
    their zero point, which int16 codes do not have."""
    tensor = sheet.tensors[codes]
    wide = sheet.like(codes, dtype="int16", zero_point=0)
    types: Fields = {0: ("b", NUMBERS["int16"]), 1: ("b", NUMBERS["int32"])}
    sheet.draw("QUANTIZE", [codes], wide)
    apart = sheet.draw("CAST", [wide], sheet.like(output), types)
    sheet.draw("ADD", [apart, sheet.numbers([tensor.zero_point])], output, {0: ("b", 0)})


def as_codes(sheet: Sheet, numbers: int, output: int) -> None:
    """int32 numbers as int8 codes, through int16 again."""
    tensor = sheet.tensors[output]
    read = [numbers, sheet.numbers([-tensor.zero_point])]
    apart = sheet.draw("ADD", read, sheet.like(numbers), {0: ("b", 0)})
    wide = sheet.like(output, dtype="int16", zero_point=0)
    types: Fields = {0: ("b", NUMBERS["int32"]), 1: ("b", NUMBERS["int16"])}
    sheet.draw("QUANTIZE", [sheet.draw("CAST", [apart], wide, types)], output)
