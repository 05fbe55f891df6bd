"""A fused node is judged by its parts: it is placed as they are where nothing is fused."""

from functools import cache

import pytest

from draws import drawn, drawn_pairs, label
from npumake.debug.model_check import check_model, prepared
from npumake.graph import Graph, Node, attribute, origin, parse_text, recorded_parts
from npumake.quant.precision.form import in_form
from npumake.targets.limits import beyond
from npumake.targets.parts import parts_of, runs, takes_int16
from npumake.targets.reader import read_target, target_names
from npumake.targets.spelled_functions import SPELLED_OUT, spelled_out
from npumake.targets.target import Target
from targets.fused_forms import FORMS, shapes_of, spelled_form

KERNEL = "no integer kernel here"  # the chip runs the node; the build keeps it in float
CHIPS = [name for name in target_names() if read_target(name).operators != ()]
CASES = [(form, "x".join(map(str, shape))) for form in FORMS for shape in shapes_of(form)]
X5, X3, ULTRA = map(read_target, ("rdk-x5", "rdk-x3", "rdk-ultra"))


def apart(text: str) -> Graph:
    """The model with each part made an output, so that nothing is fused."""
    graph = parse_text(text).with_shapes()
    graph.expose([str(node.outputs[0].name) for node in graph.nodes()])
    return prepared(graph, True)


def run_by_the_chip(graph: Graph, target: Target) -> dict[str, bool]:
    """By node, whether the chip runs it, as far as its documents say."""
    rows = check_model(graph, target).nodes
    return {row.node: row.subgraph is not None or KERNEL in row.why for row in rows}


def is_own_function(node: Node, target: Target) -> bool:
    """Whether the chip's compiler reads a fused node as an operator of its own."""
    return bool(recorded_parts(node)) and parts_of(node, target) == (node,)


@cache
def models(form: str, shape: str) -> tuple[Graph, Graph]:
    """The model as it is optimized, and with its parts apart."""
    text = spelled_form(form, tuple(map(int, shape.split("x"))))
    return prepared(parse_text(text), True), apart(text)


@pytest.mark.parametrize(("case", "chip"), drawn_pairs(drawn(CASES, 80), CHIPS), ids=label)
def test_a_fused_form_is_placed_as_its_parts(case, chip):
    optimized, parts_apart = models(*case)
    target = read_target(chip)
    graph = in_form(optimized, target)
    found, expected = run_by_the_chip(graph, target), run_by_the_chip(parts_apart, target)
    for node in graph.nodes():
        parts = [expected[name] for name in origin(node) if name in expected]
        if str(node.name) in found and not is_own_function(node, target):
            assert found[str(node.name)] == all(parts), node.name


HEADER = '<ir_version: 9, opset_import: ["" : 20]>'
NATIVE = {
    "Gelu": ("Gelu(x)", ("Gelu, halved first",)),
    "Gelu by tanh": ('Gelu<approximate="tanh">(x)', ("Gelu, Tanh and products",)),
    "HardSwish": ("HardSwish(x)", ("HardSwish, multiplied",)),
    "LayerNormalization": ("LayerNormalization(x, gamma, shift)", ("LayerNorm",)),
    "LayerNormalization without bias": ("LayerNormalization(x, gamma)", ("LayerNorm, no bias",)),
    "Mish": ("Mish(x)", ("Mish",)),
}
SIZES = ("1x4x6x6", "2x5x4", "1x1x1x4", "1x64x24x24")
HYBRID = [name for name in CHIPS if read_target(name).reads_the_model]


@pytest.mark.parametrize(
    ("case", "chip"),
    drawn_pairs([(name, size) for name in NATIVE for size in SIZES], HYBRID),
    ids=label,
)
def test_a_function_of_the_file_is_placed_as_its_spelling(case, chip):
    name, size = case
    call, (form,) = NATIVE[name]
    row = size.rpartition("x")[2]
    numbers = ", ".join(["2"] * int(row))
    graph = parse_text(
        f"""{HEADER} f (float[{size.replace("x", ",").strip()}] x) => (float[] y)
        <float[{row}] gamma = {{{numbers}}}, float[{row}] shift = {{{numbers}}}>
        {{ y = {call} }}"""
    )
    target, spelling = read_target(chip), models(form, size)[1]
    (found,) = run_by_the_chip(prepared(graph, True), target).values()
    own = target.lists(call.partition("(")[0].partition("<")[0])
    assert own or found == all(run_by_the_chip(spelling, target).values())


def test_the_parts_of_a_function_are_the_operators_that_it_stands_for():
    found = {}
    for call, _ in NATIVE.values():
        graph = parse_text(
            f"{HEADER} f (float[2,4] x, float[4] gamma, float[4] shift) => (float[2,4] y)"
            f" {{ y = {call} }}"
        ).with_shapes()
        (node,) = graph.nodes()
        found.setdefault(node.op_type, {part.op_type for part in spelled_out(node)})
    found["LayerNormalization"] |= {"Add"}
    assert found == {name: set(SPELLED_OUT[name]) for name in found}


NORM = """d{0} = ReduceMean<axes=[-1]>({1})  a{0} = Sub({1}, d{0})  s{0} = Mul(a{0}, a{0})
    v{0} = ReduceMean<axes=[-1]>(s{0})  w{0} = Add(v{0}, e)  r{0} = Sqrt(w{0})
    n{0} = Div(a{0}, r{0})  h{0} = Mul(n{0}, g{0})  y{0} = Add(h{0}, b)"""


def two_norms(width: int = 4, batch: int = 1) -> Graph:
    """Two normalizations, and a Conv around each; gamma's values would be axes out of range."""
    row = ", ".join(str(9 + n) for n in range(width))
    text = f"""<ir_version: 6, opset_import: ["" : 11]>
        f (float[{batch},3,2,{width}] x) => (float[] y)
        <float[3,3,1,1] k = {{1, 2, 3, 1, 2, 3, 1, 2, 3}}, float e = {{0.00001}},
         float[{width}] g0 = {{{row}}}, float[{width}] g1 = {{{row}}}, float[{width}] b = {{{row}}}>
        {{ c = Conv(x, k)  {NORM.format(0, "c")}  o = Conv(y0, k)  {NORM.format(1, "o")}
           y = Conv(y1, k) }}"""
    return prepared(parse_text(text), True)


def test_two_normalizations_spelled_out_run_on_the_chip():
    for target in (X5, ULTRA):
        graph = two_norms()
        assert [row.type for row in check_model(graph, target).nodes if row.subgraph is None] == []
        assert len(graph.nodes("LayerNormalization")) == 2


def test_a_part_beyond_a_limit_is_named_with_its_own_shapes():
    graph = two_norms(batch=2)  # the FAQ of this chip: both operands have the same first axis
    norm = graph.nodes("LayerNormalization")[1]
    breaches = beyond(norm, ULTRA)
    assert {limit.part for limit in breaches} == {"w1 (Add)", "h1 (Mul)", "y1 (Add)"}
    assert {limit.breach.limit for limit in breaches} == {"not batch_is_broadcast"}
    assert str(breaches[0]).startswith("w1 (Add): not batch_is_broadcast, found")
    row = next(row for row in check_model(graph, ULTRA).nodes if row.node == norm.name)
    assert (row.on, row.why) == ("CPU", "beyond a documented limit")


def test_the_operator_that_a_chip_lacks_is_named_as_a_part():
    row = next(row for row in check_model(two_norms(), X3).nodes if row.node == "y0")
    assert row.why == "the BPU does not run Sub, a part of this LayerNormalization"


def test_parts_are_kept_by_a_file_and_forgotten_by_another_operator():
    graph = Graph.from_bytes(two_norms().to_bytes())
    norm = graph.nodes("LayerNormalization")[0]
    parts = recorded_parts(norm)
    assert [part.name for part in parts] == ["d0", "a0", "s0", "v0", "w0", "r0", "n0", "h0", "y0"]
    assert attribute(parts[0], "keepdims", 1) == 1
    graph.become(norm, "Relu", norm.inputs[:1])
    assert recorded_parts(norm) == ()


def test_a_large_constant_is_kept_as_its_shape_and_whether_a_zero_is_in_it():
    graph = two_norms(width=80)
    norm = graph.nodes("LayerNormalization")[0]
    scaled = next(part for part in recorded_parts(norm) if part.name == "h0")
    assert scaled.inputs[1].shape == [80]
    assert not (scaled.inputs[1].const_value.numpy() == 0).any()


def test_int16_and_requests_hold_for_each_part():
    graph = prepared(parse_text(spelled_form("Gelu, Tanh and products", (1, 4, 6, 6))), True)
    (gelu,) = graph.nodes("Gelu")
    assert runs(gelu, ULTRA)  # Mul, Add, Tanh; it lacks Erf
    assert takes_int16(gelu, ULTRA)
    graph = prepared(parse_text(spelled_form("Gelu, halved last", (1, 4, 6, 6))), True)
    (gelu,) = graph.nodes("Gelu")
    assert not runs(gelu, ULTRA, True)
    assert runs(gelu, X5)


def test_a_silu_with_parts_on_two_units_is_not_fused():
    text = spelled_form("SiLU", (1, 5, 4))  # this chip multiplies images alone
    graph = in_form(prepared(parse_text(text), True), X3)
    rows = {row.type: row.on for row in check_model(graph, X3).nodes}
    assert rows == {"Sigmoid": "BPU", "Mul": "CPU"}
