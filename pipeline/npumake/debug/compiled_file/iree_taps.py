"""Inner tensors of a runtime that shows none: IREE's.

The same model is compiled anew with every tensor as an output too. Each dispatch of the code then
ends in a buffer of its own, so floats may be fused less; integers are the same.
"""

from __future__ import annotations

from npumake.bundle.archive import zipped
from npumake.compilers.backends import SPELLINGS, model_for
from npumake.compilers.flatfile import FlatModel, written
from npumake.compilers.iree import with_iree
from npumake.compilers.tflite import TFLiteNetwork
from npumake.debug.compiled_file.runs import Arrays, CompiledPart, job_of, laid_inside, network_of
from npumake.engine.ort import Feeds
from npumake.runtime.isolated import Isolated


def tapped_file(part: CompiledPart) -> bytes:
    """The model of `part`, compiled with its tensors as outputs. Raises StageError."""
    model = SPELLINGS["iree"](_exposed(network_of(part)))
    code, members = with_iree(written(*model), part.target)
    return code + zipped(members)


def tensors_of(part: CompiledPart, tapped: bytes, feed: Feeds) -> Arrays:
    """The tensors of a run of such a file, by the program's names. Raises RunError."""
    with Isolated(job_of(part._replace(data=tapped), [feed])) as process:
        ((outputs, _),) = process.runs()
    return laid_inside(part)(outputs)


def _exposed(network: TFLiteNetwork) -> FlatModel:
    """The network with every computed tensor of the program as an output."""
    draft = network.draft
    computed = {index for operator in draft.operators for index in operator.outputs}
    inner = [index for index in sorted(draft.file_orders()) if index in computed]
    return FlatModel(draft.tensors, draft.operators, [i for i, _ in network.inputs], inner)


def recompiled_code(part: CompiledPart) -> bytes:
    """The code of the model, without what is appended to it. Compilation is deterministic, so an
    unchanged file begins with it."""
    model = model_for(part.target.backend, part.program, part.graph)
    code, _ = with_iree(written(*model), part.target)
    return code
