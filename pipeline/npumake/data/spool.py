"""A disk buffer of feeds: written once, read repeatedly.

It is an unnamed temporary file that disappears with its last reader. It lets us check a set larger
than memory before use.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable

import numpy as np

from npumake.data.facts import Fact
from npumake.data.input_samples import PreparedSample
from npumake.data.samples import Feed
from npumake.errors import CacheError


class Spool:
    """The feeds of one input; all have the same names, shapes and types."""

    def __init__(self, samples: Iterable[PreparedSample]) -> None:
        """Stores the feeds and facts of all samples. Raises CacheError if the disk is full."""
        self.facts: list[Fact] = []
        self._like: Feed = {}
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # as long as there is a reader
        weakref.finalize(self, self._file.close)
        for fact, feed in samples:
            self.facts.append(fact)
            self._like = self._like or feed
            self._keep(feed)
        self._file.flush()

    def __len__(self) -> int:
        return len(self.facts)

    def read(self, index: int) -> Feed:
        """The feed at `index`."""
        size = sum(array.nbytes for array in self._like.values())
        data = bytearray(os.pread(self._file.fileno(), size, index * size))
        feed, start = {}, 0
        for name, array in self._like.items():
            flat = np.frombuffer(data, array.dtype, array.size, start)
            feed[name] = flat.reshape(array.shape)
            start += array.nbytes
        return feed

    def _keep(self, feed: Feed) -> None:
        try:
            for array in feed.values():
                self._file.write(np.ascontiguousarray(array).data)
        except OSError as error:
            hint = "TMPDIR names another folder for temporary files"
            raise CacheError(f"no room for the samples: {error.strerror}", hint=hint) from error
