"""Sweep: every case for every column, in processes that may die of what they run.

python -m operators.sweep            # from tests/: all of it into verdicts.json
python -m operators.sweep --missing  # what is not measured yet, or is another case by now
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from operators.truth import WRONG
from operators.worker import Cell, serve

LONGEST = 300  # seconds without a word; a child that takes longer hangs
AT_ONCE, LARGE_AT_ONCE = 16, 4  # cases of a request
MISSING = "--missing"
CORES = 2


class Child:
    """A worker, and another where it dies."""

    def __init__(self, serve: Callable[[Connection], None] = serve) -> None:
        self._serve = serve
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def asked(
        self, names: Sequence[str], columns: Sequence[str], aborting: Collection[Cell] = ()
    ) -> dict[Cell, str]:
        """Verdicts of every cell. A cell whose file kills the worker is WRONG; of several that are
        compiled together each is asked alone."""
        pipe, at = self._started(), list[Cell]()
        pipe.send((names, columns, aborting))
        while pipe.poll(LONGEST):
            try:
                kind, said = pipe.recv()
            except EOFError:
                break
            if kind == "done":
                return said
            at = said
        return self._after_death(names, columns, aborting, at)

    def _after_death(
        self,
        names: Sequence[str],
        columns: Sequence[str],
        aborting: Collection[Cell],
        at: list[Cell],
    ) -> dict[Cell, str]:
        why = self._buried()
        if len(names) > 1:
            each = [self.asked([name], columns, aborting) for name in names]
            return {cell: verdict for made in each for cell, verdict in made.items()}
        found = dict.fromkeys(at, f"{WRONG}: {why}")
        return found | self.asked(names, columns, [*aborting, *at])

    def _started(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, other = context.Pipe()
            self._process = context.Process(target=self._serve, args=(other,), daemon=True)
            self._process.start()
            other.close()
        return self._pipe

    def _buried(self) -> str:
        process, self._process, self._pipe = self._process, None, None
        assert process is not None
        process.join(5)
        status = process.exitcode
        process.kill()
        if status is None:
            return f"no answer within {LONGEST} s"
        return f"the process ends with {signal.Signals(-status).name if status < 0 else status}"

    def close(self) -> None:
        if self._pipe is not None and self._process is not None:
            self._pipe.send(None)
            self._process.join()


def swept(
    names: Sequence[str],
    columns: Sequence[str],
    children: int = CORES,
    at_once: int = AT_ONCE,
    progress: Callable[[dict[Cell, str]], object] = lambda found: None,
) -> dict[Cell, str]:
    """The verdicts of these cases for these columns."""
    chunks = [names[at : at + at_once] for at in range(0, len(names), at_once)]
    free = [Child() for _ in range(children)]

    def asked(chunk: Sequence[str]) -> dict[Cell, str]:
        child = free.pop()
        found = child.asked(chunk, columns)
        free.append(child)
        progress(found)
        return found

    try:
        with ThreadPoolExecutor(children) as threads:
            return {cell: v for found in threads.map(asked, chunks) for cell, v in found.items()}
    finally:
        for child in free:
            child.close()


def main(operators: Collection[str] = (), *, missing: bool = False) -> None:
    """The whole table into VERDICTS, what it has of these operators, or what is missing; and the
    page from it. What is found is saved on the way."""
    from operators import page, verdicts
    from operators.cases import CASES
    from operators.large import is_large
    from operators.truth import COLUMNS

    os.environ.setdefault("NPUMAKE_OPENVINO_PYTHON", sys.executable)
    known = verdicts.cells() if operators or missing else {}
    names = [name for name, case in CASES.items() if not operators or case.operator in operators]
    if missing:
        names = [name for name in names if not verdicts.is_measured(CASES[name], known)]

    def save(found: dict[Cell, str]) -> None:
        known.update(found)
        verdicts.save(known)

    for large, at_once in ((False, AT_ONCE), (True, LARGE_AT_ONCE)):
        sized = [name for name in names if is_large(CASES[name]) == large]
        swept(sized, list(COLUMNS), at_once=at_once, progress=save)
    page.FILE.write_text(page.page(), encoding="utf-8")


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != MISSING], missing=MISSING in sys.argv)
