"""Inner tensors of a runtime that shows none: IREE's.

The same model is compiled anew with every tensor as an output too. Each dispatch of the code then
ends in a buffer of its own, so floats may be fused less; integers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npumake.bundle.archive import zipped
from npumake.compilers.backends import SPELLINGS, model_for
from npumake.compilers.flatfile import FlatModel, written
from npumake.compilers.iree import with_iree
from npumake.compilers.tflite import TFLiteNetwork, drawing
from npumake.debug.compiled_file.runs import Arrays, CompiledPart, job_of, laid_inside
from npumake.engine.ort import Feeds
from npumake.runtime.isolated import Isolated


def shown_anew(part: CompiledPart, feeds: Sequence[Feeds]) -> Iterator[tuple[Arrays, bool]]:
    """The tensors of each run, by the program's names, and whether the file of `part` is what the
    compiler makes of its model. Raises RunError, StageError."""
    network = drawing(part.program, part.graph)
    model = SPELLINGS["iree"](_exposed(network))
    code, members = with_iree(written(*model), part.target)
    anew = part._replace(data=code + zipped(members))
    lay, is_same = laid_inside(part), _is_compiled_so(part)
    with Isolated(job_of(anew, feeds)) as process:
        for outputs, _ in process.runs():
            yield lay(outputs), is_same


def _exposed(network: TFLiteNetwork) -> FlatModel:
    """The network with every computed tensor of the program as an output."""
    draft = network.draft
    computed = {index for operator in draft.operators for index in operator.outputs}
    inner = [index for index in sorted(draft.file_orders()) if index in computed]
    return FlatModel(draft.tensors, draft.operators, [i for i, _ in network.inputs], inner)


def _is_compiled_so(part: CompiledPart) -> bool:
    """Compilation is deterministic, so an unchanged file begins with the code of another one."""
    model = model_for(part.target.backend, part.program, part.graph)
    code, _ = with_iree(written(*model), part.target)
    return part.data.startswith(code)
