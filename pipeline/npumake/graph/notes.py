"""Notes in an ONNX file that is to stay what it is: one that another tool made, with what it knows
of its own in it."""

from __future__ import annotations

from collections.abc import Mapping

import google.protobuf.message
import onnx

from npumake.errors import GraphError


def noted(model: bytes, notes: Mapping[str, str], name: str) -> bytes:
    """The file with these in its metadata, in the place of those of the same names.

    Raises GraphError for what is no ONNX.
    """
    if not notes:
        return model
    try:
        proto = onnx.load_from_string(model)
    except (google.protobuf.message.DecodeError, ValueError) as error:
        raise GraphError(f"not an ONNX model: {error}", name) from error
    onnx.helper.set_model_props(
        proto, {prop.key: prop.value for prop in proto.metadata_props} | dict(notes)
    )
    return proto.SerializeToString(deterministic=True)
