"""Security policies reach the tensors of the bundle that they are meant for."""

import pytest

from npumake.borders.images import mark_trained
from npumake.borders.policies import policies
from npumake.bundle.program import Program
from npumake.errors import ProjectError
from npumake.graph import parse_text
from npumake.project.security import Security

GRAPH = (
    "agraph (float[1,8,8,1] a_y8, float[1,4,4,2] a_uv8, int32[1] a_crop_width, float[1] b)"
    """
    => (float[1] y, float[1] z) { y = Relu(b)  z = Abs(b) }"""
)
PROGRAM = Program(("a_y8", "a_uv8", "a_crop_width", "b"), ("y", "z"), {}, ())


def found(**said: dict) -> dict:
    graph = parse_text(GRAPH)
    mark_trained(graph, {"a": (1, 3, 8, 8), "b": None})
    return policies(Security(**said), graph, PROGRAM)


def test_planes_have_the_policy_of_their_picture_and_a_rectangle_has_none():
    planes = {"a_y8": "secure", "a_uv8": "secure"}
    for key in ("a", "@0"):
        assert found(inputs={key: "secure"}) == {"inputs": planes}
    assert found(inputs={"*": "secure", "b": "any"}) == {"inputs": planes}


def test_what_is_usual_is_not_said():
    assert found(inputs={"*": "any"}, outputs={"@1": "any", "y": "secure-if-input-secure"}) == {
        "outputs": {"z": "any"}
    }


@pytest.mark.parametrize(("role", "name"), [("inputs", "c"), ("inputs", "@2"), ("outputs", "b")])
def test_a_stranger_is_an_error_in_the_yaml(role, name):
    with pytest.raises(ProjectError, match=f"the model has no {role[:-1]} `{name}`") as caught:
        found(**{role: {name: "any"}})
    assert caught.value.where == f"security.{role}.{name}"
