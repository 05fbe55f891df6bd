"""Batched: runs a program for one image on several, along the first axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npumake.engine.exact import ExactSession
from npumake.errors import GraphError


class Batched:
    def __init__(self, session: ExactSession, batch: int) -> None:
        self._session = session
        self._batch = batch
        self.inputs, self.outputs = (
            tuple(port._replace(shape=[batch, *port.shape[1:]]) for port in ports)
            for ports in (session.inputs, session.outputs)
        )
        self.input_names = session.input_names
        self.output_names = session.output_names

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Outputs of shape (batch, …) for feeds of shape (batch, …).

        Raises GraphError for another number of images, and as a run of one image does.
        """
        for name, images in feeds.items():
            if images.shape[:1] != (self._batch,):
                message = f"`{name}` takes {self._batch} images per run, not {list(images.shape)}"
                raise GraphError(message)
        runs = [
            self._session.run(names, {name: images[at : at + 1] for name, images in feeds.items()})
            for at in range(self._batch)
        ]
        return [
            np.concatenate([np.atleast_1d(part) for part in parts])
            for parts in zip(*runs, strict=True)
        ]
