"""npumake: a model project is YAML; the pipeline turns it into artifacts, one stage at a time.

FLOORS is the map of the house. Imports point down: never up, never sideways.
`tests/test_architecture.py` enforces it. Read `stages/` and you have read the pipeline.
"""

TYPE_CHECKING = False  # without `typing`, which is slow to import
if TYPE_CHECKING:  # the public face, as type checkers and editors see it
    from npumake.api.build import build as build
    from npumake.api.check import CheckResult as CheckResult
    from npumake.api.check import check as check
    from npumake.api.compare import compare as compare
    from npumake.api.quantize import QuantizedModel as QuantizedModel
    from npumake.api.quantize import quantize as quantize
    from npumake.api.results import BuildResult as BuildResult
    from npumake.api.table import Table as Table
    from npumake.errors import PipelineError as PipelineError
    from npumake.runtime.session import Session as Session

FLOORS = (
    ("__main__", "dodo", "api"),  # the ways in: `python -m npumake`, a dodo.py, a notebook
    ("cli",),  # what a person types, and everything that prints
    ("make",),  # what runs, and why
    ("stages",),  # THE PIPELINE
    ("report", "recognition"),  # what was found, as one page; how a model file is fed
    ("debug", "evaluate", "perf"),  # how close: artifacts compared; how good; how fast
    ("quant", "compilers"),  # ranges, grids and Q/DQ; files of other runtimes
    ("dialects",),  # vendors' words: their YAML in, the hand-over out
    ("passes", "frontends", "borders", "targets"),  # fewer nodes; files in; what is fed; chips
    ("runtime",),  # run any artifact
    ("engine", "data"),  # run a graph; read what it is fed
    ("custom", "detection"),  # operators in the user's own Python; heads of detectors
    ("graph", "project", "cache", "bundle"),  # the nouns: a model, its YAML, its artifacts
    ("kernels", "plugins"),  # numbers only; what installed packages add
    ("errors", "digest", "distribution", "extras", "late", "lifetime", "progress"),  # stdlib
)

# The public face: name → the module that has it, loaded when the name is first used.
PUBLIC = {
    "BuildResult": "npumake.api.results",
    "CheckResult": "npumake.api.check",
    "PipelineError": "npumake.errors",
    "QuantizedModel": "npumake.api.quantize",
    "Session": "npumake.runtime.session",
    "Table": "npumake.api.table",
    "build": "npumake.api.build",
    "check": "npumake.api.check",
    "compare": "npumake.api.compare",
    "quantize": "npumake.api.quantize",
}


def __getattr__(name: str) -> object:
    if name in PUBLIC:
        from importlib import import_module  # here, for `npumake --help` needs none

        return getattr(import_module(PUBLIC[name]), name)
    raise AttributeError(f"module `npumake` has no attribute `{name}`")


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
