"""Facts of a finished build, by target: accuracy, size of the compiled file, placement of nodes.

cosine            of each output of `quantized` to the float model
compiled cosine   of each output of the compiled file to the float model
scores            figures of each evaluated artifact
gates             met, or not
size              of the compiled file, in bytes
placement         the unit that runs each node
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from npumake.report.facts import Facts, facts

COMPILED = "compiled"
COMPARED = (COMPILED, "comparison", "compiled_check", "evaluation", "verdict")  # by their stages
OUTPUT = "output "  # begins the names of outputs among those of nodes


def build_facts(artifacts: Mapping[str, Path]) -> Facts:
    """The facts of one target's `artifacts` by stage. A section without artifact is left out.

    Raises PipelineError for a damaged artifact.
    """
    documents = {stage: facts(artifacts[stage]) for stage in COMPARED[1:] if stage in artifacts}
    comparison = documents.get("comparison", {})
    sections = {
        "cosine": {n: x for n, x in comparison.get("cosines", {}).items() if n.startswith(OUTPUT)},
        "compiled cosine": documents.get("compiled_check", {}).get("cosines", {}),
        "scores": documents.get("evaluation", {}).get("scores", {}),
        "gates": documents.get("verdict", {}).get("gates", {}),
        "placement": comparison.get("units", {}),
    }
    if COMPILED in artifacts:
        sections["size"] = {"bytes": artifacts[COMPILED].stat().st_size}
    return {name: section for name, section in sections.items() if section}
