"""rich's console for untrusted text: without markup and control characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from npumake.cli.terminal import printable


class PrintedConsole(Console):
    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def on_broken_pipe(self) -> None:
        """Leaves a closed pipe to the caller."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """A cell or a line, escaped before it is measured."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Escapes text; the console's own control sequences stay."""
        for segment in super().render(renderable, options):
            plain = segment.control or segment.text.isprintable()
            yield segment if plain else Segment(printable(segment.text), segment.style)
