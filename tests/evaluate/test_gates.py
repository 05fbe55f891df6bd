"""What a gate makes of what was measured."""

import pytest

from npumake.errors import ProjectError
from npumake.evaluate.gates import BuildFigures, gate_condition
from npumake.project.sections import Gate


@pytest.mark.parametrize(("most", "met"), [(2.0, False), (3.0, True)])
def test_a_latency_that_is_a_lower_bound_says_so(most, met):
    wish = gate_condition(
        Gate(max_latency_ms=most), 0, BuildFigures((), None, 0, 2.5, latency_is_bound=True)
    )
    assert wish.met == met
    assert wish.what == f"a frame takes at least 2.5 ms (compute only); at most {most:g} is allowed"


def test_a_latency_of_which_nothing_is_known_is_asked_in_vain():
    with pytest.raises(ProjectError, match="the latency on this target is unknown"):
        gate_condition(Gate(max_latency_ms=1.0), 0, BuildFigures((), None, 0))
