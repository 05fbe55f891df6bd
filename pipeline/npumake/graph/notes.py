"""Metadata notes in an ONNX file that another tool wrote and that otherwise stays unchanged."""

from __future__ import annotations

from collections.abc import Mapping

import google.protobuf.message
import onnx

from npumake.errors import GraphError


def noted(model: bytes, notes: Mapping[str, str], name: str) -> bytes:
    """The file with these notes in its metadata; notes of the same names are replaced.

    Raises GraphError for bytes that are not ONNX.
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
