"""The blobs of a .caffemodel by layer, checked against the expected shapes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from npumake.errors import GraphError, did_you_mean
from npumake.frontends.caffe.messages import Message, parse_weights

Shape = tuple[int, ...]


class TrainedBlobs:
    """The trained blobs by layer. `name` is the file's."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._layers: dict[str, list[Message]] = {}
        for layer, blobs in _trained(parse_weights(data, name)):
            self._layers.setdefault(layer, blobs)
        if not any(self._layers.values()):
            raise GraphError("not a .caffemodel: it holds no weights", name)

    def of(self, layer: str, shapes: tuple[Shape, ...]) -> list[np.ndarray]:
        """The blobs of a layer as float32 in these shapes. Raises GraphError."""
        blobs = self._layers.get(layer)
        if not blobs:
            trained = [name for name, messages in self._layers.items() if messages]
            hint = "" if blobs is not None else did_you_mean(layer, trained)
            raise GraphError(f"no weights for layer `{layer}`", self.name, hint)
        if len(blobs) != len(shapes):
            raise GraphError(
                f"layer `{layer}` has {len(blobs)} weight blobs; the network needs {len(shapes)}",
                self.name,
            )
        pairs = zip(blobs, shapes, strict=True)
        return [self._array(layer, blob, shape) for blob, shape in pairs]

    def _array(self, layer: str, blob: Message, shape: Shape) -> np.ndarray:
        stored_shape, legacy = _shape(blob)
        # Old files store four dimensions, with leading ones.
        fits = stored_shape == shape or (legacy and stored_shape == (1,) * (4 - len(shape)) + shape)
        if not fits:
            raise GraphError(
                f"a weight blob of layer `{layer}` has shape {list(stored_shape)}; "
                f"the network needs {list(shape)}",
                self.name,
                "is it the .caffemodel of this .prototxt?",
            )
        values = _values(blob)
        if values.size != prod(shape):
            raise GraphError(
                f"a weight blob of layer `{layer}` holds {values.size} values, not the "
                f"{prod(shape)} of its shape",
                self.name,
            )
        return values.reshape(shape)


def _trained(net: Message) -> Iterator[tuple[str, list[Message]]]:
    """(name, blobs) of every layer; V0 nests both in a second message."""
    inside = [layer_v1.layer if layer_v1.HasField("layer") else layer_v1 for layer_v1 in net.layers]
    for layer in (*inside, *net.layer):
        yield layer.name.decode("utf-8", "replace"), list(layer.blobs)


def _shape(blob: Message) -> tuple[Shape, bool]:
    """The shape, and whether it is in the old four-dimensional form."""
    if blob.HasField("shape"):
        return tuple(blob.shape.dim), False
    return (blob.num, blob.channels, blob.height, blob.width), True


def _values(blob: Message) -> np.ndarray:
    """The values, little-endian on the wire; an incomplete last one is dropped."""
    for chunks, kind in ((blob.data, "<f4"), (blob.double_data, "<f8")):
        data = b"".join(chunks)
        if data:
            return np.frombuffer(data, kind, len(data) // int(kind[-1])).astype(np.float32)
    return np.empty(0, np.float32)
