"""One small graph per documented limit: just inside it, and just outside."""

import pytest

from npumake.graph import parse_text
from npumake.targets.expression import broken, names
from npumake.targets.facts import FACTS, facts_of
from npumake.targets.limits import beyond
from npumake.targets.reader import read_target, target_names

X3, X5, ULTRA = "rdk-x3", "rdk-x5", "rdk-ultra"
NASH = ("nash-e", "nash-m")
MADE = {"ArgMax": "int64", "ArgMin": "int64", "Greater": "bool", "Less": "bool", "Equal": "bool"}
CONV = "Conv<pads=[0,0,0,0], {}>(x, w)"
DECONV = "ConvTranspose<{}>(x, w)"
FLIP = 'Resize<mode="nearest", coordinate_transformation_mode="{}">(x, , s)'

# chips, what is fed (int64 behind `i`, constants behind `=`), the node, inside, outside, the limit
LIMITS = [
    (X3, "x:{},3,4,4", "Relu(x)", "128", "129", "batch <= 128"),
    (X3, "x:1,{},4,4 w:1,{},4,4", "Add(x, w)", "2048", "2049", "channels <= 2048"),
    (X3, "x:1,3,4,4 w:1,{},1", "Add(x, w)", "3,1", "1,4", "pairing in"),
    (X3, "x:{} w:{}", "Mul(x, w)", "1,3,4,4", "3,4,4", "rank == 4"),
    (X3, "x:1,{},2,2 w:1,1,1,1", "Mul(x, w)", "2048", "2049", "channels <= 2048"),
    (X3, "x:1,3,4,4 w:1,{}", "Mul(x, w)", "1,1,1", "1,4,4", "pairing in"),
    (X3, "x:1,1,2,2 w=1:{}", "Mul(x, w)", "1.0", "0.0", "constant_has_zero"),
    (X3, "x:1,3,2,2 w{}", "Div(x, w)", ":1,3,2,2", "=1:2.0", "constants == 0"),
    (X3, "x:{}", "ArgMax<axis=1>(x)", "1,3,4,4", "1,3,4", "rank == 4"),
    (X3, "x:1,3,4,4", "ArgMax<axis={}>(x)", "1", "2", "axis == 1"),
    ((X3, ULTRA), "x:1,{},2,2", "ArgMax<axis=1>(x)", "64", "65", "channels <= 64"),
    (X5, "x:1,{},2,2", "ArgMin<axis=1>(x)", "8191", "8192", "channels <= 8191"),
    (NASH, "x:1,{},2,2", "ArgMax<axis=1>(x)", "32767", "32768", "reduced <= 32767"),
    (NASH, "x:1,{},2,2", "ArgMin<axis=1>(x)", "32767", "32768", "reduced <= 32767"),
    (X3, "x:1,3,9,9", "AveragePool<kernel_shape=[{},2]>(x)", "7", "8", "kernel_h <= 7"),
    (
        X3,
        "x:1,3,9,400",
        "MaxPool<kernel_shape=[2,2], strides=[1,{}]>(x)",
        "185",
        "186",
        "stride_w <= 185",
    ),
    (X3, "x:1,3,70,70", "MaxPool<kernel_shape=[{},2]>(x)", "64", "65", "kernel_h <= 64"),
    (
        (X3, X5, ULTRA),
        "x:1,3,9,9",
        "MaxPool<kernel_shape=[2,2], dilations=[1,{}]>(x)",
        "1",
        "2",
        "dilation_w == 1",
    ),
    (X3, "x:1,1024,2,2 w:1,{},2,2", "Concat<axis=1>(x, w)", "1024", "1025", "out_channels <= 2048"),
    (X3, "x:1,3,9,9 w:4,3,{},1", CONV.format("group=1"), "7", "8", "kernel_h <= 7"),
    (X3, "x:1,{},2,2 w:4,{},1,1", CONV.format("group=1"), "4096", "4097", "channels_per_group <="),
    (X3, "x:1,{},9,9 w:4,{},7,7", CONV.format("group=1"), "668", "669", "<= 32768"),
    (X3, "x:1,1,9,9 w:4,1,2,2", CONV.format("dilations=[{},4]"), "2", "3", "power_of_two(dilation"),
    (X3, "x:1,1,9,9 w:4,1,2,2", CONV.format("dilations=[2,{}]"), "4", "1", "<= dilation_w"),
    (
        X3,
        "x:1,1,9,9 w:4,1,2,2",
        CONV.format("dilations=[2,2], strides=[1,{}]"),
        "2",
        "4",
        "dilation_w % stride_w == 0",
    ),
    (X3, "x:1,3,3,3 w:3,2,{},2", DECONV.format("strides=[2,2]"), "14", "15", "kernel_h <= 14"),
    (
        X3,
        "x:1,3,9,9 w:3,2,4,4",
        DECONV.format("strides=[2,2], pads=[{},0,0,0]"),
        "1",
        "2",
        "2 * pad_h",
    ),
    (X3, "x:1,3,3,3 w:3,2,4,4", DECONV.format("strides=[2,{}]"), "4", "3", "stride_w in [2, 4]"),
    (X3, "x:1,2,{}", "Tanh(x)", "64,64", "64,65", "elements <= 8192"),
    (X3, "x:1,32,16,{}", "Sigmoid(x)", "16", "17", "elements_32c"),
    (
        X3,
        "x:1,16,2,2",
        'DepthToSpace<blocksize={}, mode="CRD">(x)',
        "2",
        "4",
        "block == 2",
    ),
    (X3, "x:1,{} w:{},2", "Gemm(x, w)", "16384", "16385", "16384"),
    (X3, "x:1,1,64,{}", "GlobalAveragePool(x)", "128", "129", "height * width <= 8192"),
    (X3, "x:1,1,{},2", "GlobalMaxPool(x)", "1024", "1025", "height <= 1024"),
    (
        X3,
        "x:1,1,4,4 ip=8:{}",
        "Pad(x, ip)",
        "0,0,1,1,0,0,1,1",
        "0,1,0,0,0,0,0,0",
        "not in pad_axes",
    ),
    (X3, "x:1,1,4,4 ip=8:0,0,1,1,0,0,1,1", 'Pad<mode="{}">(x, ip)', "constant", "edge", "mode =="),
    (X3, "x:1,1,1,2 w={}", "Pow(x, w)", "1:3", "2:3,2", "exponent_size == 1"),
    (X3, "x:{}", "ReduceMean<axes=[2,3]>(x)", "1,3,4,4", "1,3,4,4,4", "rank == 4"),
    (X3, "x:1,3,4,4", "ReduceMean<axes=[{}]>(x)", "2,3", "1", "axes == [2, 3]"),
    (X3, "x:1,1,4,4 s=4:{}", FLIP.format("asymmetric"), "1,1,2,4", "1,1,4,2", "scale_h <= scale_w"),
    (
        (X3, X5, ULTRA),
        "x:1,1,4,4 s=4:1,1,{}",
        FLIP.format("half_pixel"),
        "2,2",
        "3,3",
        "power_of_two",
    ),
    (X5, "x:1,1,4,4 s=4:{},2,2", FLIP.format("half_pixel"), "1,1", "1,2", "changes_only_hw"),
    (
        (X3, X5),
        "x:1,1,4,4 s=4:1,1,2,2",
        'Resize<mode="{}">(x, , s)',
        "linear",
        "cubic",
        "mode in",
    ),
    (X3, "x:1,1,4,4 s=4:1,1,2,2", FLIP, "asymmetric", "tf_half_pixel_for_nn", "coordinates in"),
    (X5, "x:1,4,4,4", 'DepthToSpace<blocksize=2, mode="{}">(x)', "DCR", "DRC", "mode in"),
    (X5, "x:1 w{}", "Add(w, w)", ":1", "=1:2", "constants <= 1"),
    (X5, "x:{},1 w:1", "Mul(x, w)", ",".join("1" * 9), ",".join("1" * 10), "rank <= 10"),
    (ULTRA, "x:1,1,720,{} w:1,2,2,2", "GridSample(x, w)", "1024", "1025", "<= 737280"),
    (X3, "x:1,3,4,4", "Softmax<axis={}>(x)", "1", "2", "axis == 1"),
    (X3, "x:1,4,4,4", "Split<axis={}>(x)", "1", "0", "axis in [1, 2, 3]"),
    ((X5, ULTRA), "x:1,{}", "Sin(x)", "65536", "65537", "longest <= 65536"),
    ((X5, ULTRA), "x:{},1,1,1", "Relu(x)", "4096", "4097", "batch <= 4096"),
    ((X5, ULTRA), "x:{}", "Relu(x)", "1,2,3,4", "2,3,4", "rank == 4"),
    ((X5, ULTRA), "x:{}", "Exp(x)", ",".join("1" * 10), ",".join("1" * 11), "rank <= 10"),
    (ULTRA, "x:{},2", "Log(x)", "4096", "4097", "outermost <= 4096"),
    (
        (X5, ULTRA),
        "x:2 ip={},1,1,1,1,1,1,1,1,1",
        "Reshape(x, ip)",
        "10:2",
        "11:2,1",
        "out_rank <= 10",
    ),
    (X5, "x:2,3,4,5,6,7 w:{}", "Mul(x, w)", "2,3,4,5,1,7", "2,1,4,1,6,1", "collapsed_rank <= 4"),
    (ULTRA, "x:2,3,4,5,6 w:{}", "Mul(x, w)", "2,3,4,5,1", "2,1,4,1,6", "merged_rank <= 4"),
    (ULTRA, "x:{},1 w:{},1", "Sub(x, w)", "2,3,4,5", "2,3,4,5,6", "rank <= 5"),
    (ULTRA, "x:2,3,4,4 w:{},3,4,4", "Add(x, w)", "2", "1", "batch_is_broadcast"),
    (ULTRA, "x:1,2 w{}", "Div(x, w)", ":1,2", "=1:2.0", "constants == 0"),
    (X5, "x:1,3,4,{} w:1,3,1,4", "Less(x, w)", "4", "1", "broadcast_operands <= 1"),
    (ULTRA, "x:1,3,4,{} w:1,3,1,4", "Max(x, w)", "4", "1", "broadcast_operands <= 1"),
    (
        (X5, ULTRA),
        "x:1,2,300,2",
        "MaxPool<kernel_shape=[{},1]>(x)",
        "256",
        "257",
        "kernel_h <= 256",
    ),
    (X5, "x:1,2,99,99", "AveragePool<kernel_shape=[91,{}]>(x)", "90", "91", "<= 8192"),
    (
        (X5, ULTRA),
        "x:1,2,400,9",
        "AveragePool<kernel_shape=[2,2], strides=[{},1]>(x)",
        "256",
        "257",
        "stride_h <= 256",
    ),
    (
        X5,
        "x:1,2,400,9",
        "AveragePool<kernel_shape=[256,2], pads=[{},0,0,0]>(x)",
        "255",
        "256",
        "pad_h <= 255",
    ),
    (
        X5,
        "x:1,2,400,9",
        "MaxPool<kernel_shape=[256,2], pads=[{},0,0,0]>(x)",
        "255",
        "257",
        "pad_h <= 256",
    ),
    (
        X5,
        "x:1,2,400,9",
        "MaxPool<kernel_shape=[2,2], strides=[{},1]>(x)",
        "256",
        "257",
        "stride_h <= 256",
    ),
    (
        ULTRA,
        "x:1,2,400,9",
        "MaxPool<kernel_shape=[256,2], pads=[{},0,0,0]>(x)",
        "255",
        "257",
        "pad_h <= 256",
    ),
    ((X5, ULTRA), "x:2,2,3,3 w:2,2,3,3", "Concat<axis={}>(x, w)", "1", "0", "axis != 0"),
    ((X5, ULTRA), "x:1,2,40,40 w:3,2,{},2", CONV.format("group=1"), "31", "32", "kernel_h <= 31"),
    ((X5, ULTRA), "x:1,{},1,1 w:2,{},1,1", CONV.format("group=1"), "8192", "8193", "<= 8192"),
    (X5, "x:1,{},9,9 w:2,{},7,7", CONV.format("group=1"), "668", "669", "<= 32767"),
    (ULTRA, "x:1,{},9,9 w:2,{},7,7", CONV.format("group=1"), "1337", "1338", "<= 65535"),
    ((X5, ULTRA), "x:1,1,600,2 w:2,1,2,1", CONV.format("strides=[{},1]"), "256", "257", "<= 256"),
    (
        (X5, ULTRA),
        "x:1,1,8,8 w:2,1,2,2",
        CONV.format("dilations=[2,2], strides=[1,{}]"),
        "1",
        "2",
        "stride_w == 1",
    ),
    ((X5, ULTRA), "x:1,1,272,1 w:2,1,2,1", CONV.format("dilations=[{},1]"), "16", "17", "<= 16"),
    (
        (X5, ULTRA),
        "x:1,1,{},8 w:2,1,2,2",
        CONV.format("dilations=[2,2]"),
        "8",
        "9",
        "height % dilation_h == 0",
    ),
    ((X5, ULTRA), "x:1,1,4,4 w:2,1,3,3", "Conv<pads=[{},0,0,0]>(x, w)", "256", "257", "pad_h <="),
    ((X5, ULTRA), "x:1,2,{} w:2,2,{}", "Conv(x, w)", "1,1", "1", "rank in [4, 5]"),
    ((X5, ULTRA), "x:{},1,2,2,2 w:2,1,1,1,1", "Conv(x, w)", "128", "129", "batch <= 128"),
    (
        (X5, ULTRA),
        "x:1,1,2,2,2 w:2,1,3,1,1",
        "Conv<pads=[{},0,0,0,0,0]>(x, w)",
        "1",
        "2",
        "2 * pad_d",
    ),
    (
        (X5, ULTRA),
        "x:1,1,4,4,4 w:2,1,1,1,1",
        "Conv<strides=[1,{}]>(x, w)",
        "2,2",
        "2,1",
        "[[1, 1], [2, 2]]",
    ),
    ((X5, ULTRA), "x:1,{},4,1,1 w:2,{},4,1,1", "Conv(x, w)", "2048", "2049", "kernel_d * channels"),
    ((X5, ULTRA), "x:1,1,9000,1,1 w:2,1,{},1,1", "Conv(x, w)", "8191", "8192", "kernel_d <= 8191"),
    ((X5, ULTRA), "x:{},3,3,3 w:3,2,2,2", DECONV.format("strides=[2,2]"), "128", "129", "batch <="),
    (
        (X5, ULTRA),
        "x:1,3,3,3 w:3,2,{},2",
        DECONV.format("strides=[2,2]"),
        "14",
        "15",
        "kernel_h <=",
    ),
    (X5, "x:1,{},2,2 w:{},2,14,14", DECONV.format("strides=[2,2]"), "668", "669", "phase_size"),
    (ULTRA, "x:1,1,2,2 w:1,{},14,14", DECONV.format("strides=[2,2]"), "334", "335", "<= 65535"),
    (
        (X5, ULTRA),
        "x:1,1,4,4 w:1,1,4,4",
        DECONV.format("strides=[2,2], pads=[{},0,0,0]"),
        "2",
        "3",
        "pad_h * stride_h",
    ),
    (
        (X5, ULTRA),
        "x:1,1,4,4 w:1,1,4,4",
        DECONV.format("strides=[3,3], output_padding=[{},0]"),
        "1",
        "2",
        "output_padding in",
    ),
    ((X5, ULTRA), "x:1,1,4,4 w:1,1,4,4", DECONV.format("strides=[1,{}]"), "2", "1", "!= [1, 1]"),
    (
        (X5, ULTRA),
        "x:1,1,4,4 w:1,1,4,4",
        DECONV.format("strides=[2,2], dilations=[{},1]"),
        "1",
        "2",
        "dilation_h == 1",
    ),
    ((X5, ULTRA), "x:1,16,4,4", "DepthToSpace<blocksize={}>(x)", "2", "4", "block == 2"),
    ((X5, ULTRA), "x:1,1,1,2 ip=4:{}", "Expand(x, ip)", "1,4,1,2", "1,4,4,2", "changed_axes <= 1"),
    ((X5, ULTRA), "x:3,2 i:{}", "Gather(x, i)", "1,1,1", "1,1,1,1", "<= 4"),
    (X5, "x:3,2 i:1,{}", "GatherElements<axis=0>(x, i)", "2", "3", "indices_fit"),
    ((X5, ULTRA), "x:1,{} w:{},2", "Gemm(x, w)", "8192", "8193", "channels <= 8192"),
    ((X5, ULTRA), "x:1,1,{},2", "GlobalMaxPool(x)", "256", "257", "height <= 256"),
    (X5, "x:1,1,512,{} w:1,2,2,2", "GridSample(x, w)", "512", "513", "height * width <= 262144"),
    (
        (X5, ULTRA),
        "x:1,1,4,4 w:1,2,2,2",
        'GridSample<mode="{}">(x, w)',
        "nearest",
        "bicubic",
        "mode in",
    ),
    (
        (X5, ULTRA),
        "x:1,1,4,4 w:1,2,2,2",
        'GridSample<padding_mode="{}">(x, w)',
        "border",
        "reflection",
        "padding_mode in",
    ),
    (
        (X3, X5, ULTRA),
        "x:2,{},3 w:1,8,3 r:1,8,2",
        "LSTM<hidden_size=2>(x, w, r)",
        "1",
        "2",
        "rnn_batch == 1",
    ),
    (
        X3,
        "x:1,2,4,3 w:1,{},3,4",
        "MatMul(x, w)",
        "1",
        "2",
        "form in ['1BMK x 11KN', '11MK x 11KN']",
    ),
    (X3, "x:{},4,3 w=3,1:0,0,0", "MatMul(x, w)", "2", "1", "'BMK x KN'"),
    (X3, "x:1,{},3,4 w=1,2,4,3:" + ",".join("0" * 24), "MatMul(w, x)", "1", "2", "constant_left"),
    ((X5, ULTRA), "x:1,2,3 w:{}3,4", "MatMul(x, w)", "1,", "", "rank_a == rank_b"),
    ((X5, ULTRA), "x:1,{} w:{},1", "MatMul(x, w)", "8192", "8193", "inner_sides <= 8192"),
    ((X5, ULTRA), "x:{},2,3 w:4,5,3,2", "MatMul(x, w)", "1,1", "4,1", "left_mixes"),
    ((X5, ULTRA), "x:4,5,6,2,3 w:4,{},3,2", "MatMul(x, w)", "1,1", "1,6", "right_leads"),
    ((X5, ULTRA), "x:1,{},2,2", "ReduceMax<axes=[1]>(x)", "8192", "8193", "reduced <= 8192"),
    ((X5, ULTRA), "x:1,2,2,2", "ReduceMax<axes=[{}]>(x)", "1", "1,2", "len(axes) == 1"),
    ((X5, ULTRA), "x:1,2,2,2", "ReduceMean<axes=[{}]>(x)", "2,3", "1,2", "axes == [2, 3]"),
    ((X5, ULTRA), "x:1,2,2,2", "ReduceMean<axes=[1], keepdims={}>(x)", "1", "0", "keepdims == 1"),
    ((X5, ULTRA), "x:1,3,4,4", "Softmax<axis={}>(x)", "2", "0", "axis in [1, 2, 3]"),
    (X5, "x:1,1,{}", "PRelu(x, x)", "1,1", "1", "rank == 4"),
]
CASES = [
    pytest.param(chip, *row[1:], id=f"{chip} {row[2].partition('(')[0]} {row[5]}")
    for row in LIMITS
    for chip in ([row[0]] if isinstance(row[0], str) else row[0])
]


def graph(fed, node, number):
    """The node alone; `number` stands where `{}` does."""
    fed, node = fed.replace("{}", number), node.replace("{}", number)
    inputs, constants = [], []
    for said in fed.split():
        name = said[: min(said.find(sign) % 99 for sign in ":=")]
        kind = "int64" if name.startswith("i") else "float"
        if said[len(name)] == ":":
            inputs.append(f"{kind}[{said[len(name) + 1 :]}] {name}")
            continue
        count, _, numbers = said[len(name) + 1 :].partition(":")
        numbers = (
            numbers if kind == "int64" else ",".join(f"{float(n)}" for n in numbers.split(","))
        )
        constants.append(f"{kind}[{count}] {name} = {{{numbers}}}")
    made = MADE.get(node.partition("<")[0].partition("(")[0], "float")
    held = f"<{', '.join(constants)}>" if constants else ""
    return parse_text(f"a ({', '.join(inputs)}) => ({made}[] y) {held} {{ y = {node} }}")


def found(chip, fed, node, number):
    (made,) = graph(fed, node, number).nodes()
    return [each.breach.limit for each in beyond(made, read_target(chip))]


@pytest.mark.parametrize(("chip", "fed", "node", "inside", "outside", "limit"), CASES)
def test_a_limit_holds_just_inside_and_not_just_outside(chip, fed, node, inside, outside, limit):
    assert found(chip, fed, node, inside) == []
    assert any(limit in part for part in found(chip, fed, node, outside))


RESIDUAL = """a (float[1,2,9,9] x, float[2,2,1,1] w, float[1,2,N,M] r) => (float[] y) {{
    k = Neg(r)  n = Conv<strides=[1,{}]>(x, w)  y = Add(n, k) }}"""
PARTS = """a (float[1,4,3,3] x) => (float[] n, float[] y) <int64[2] s = {{{}}}> {{
    n, y = Split<axis=1>(x, s) }}"""
SORTED = """a (float[1,4] x) => (float[] n, int64[] y) <int64[1] k = {{2}}> {{
    n, y = TopK<sorted={}>(x, k) }}"""
# Nodes that are no one-liners; what a limit is held against is the node that makes `n`.
APART = [
    (X3, RESIDUAL, "2", "3", "residual_add"),
    (X5, RESIDUAL, "2", "3", "residual_add"),
    (ULTRA, RESIDUAL, "2", "3", "residual_add"),
    (X3, PARTS, "2,2", "1,3", "equal_parts"),
    (X5, PARTS, "2,2", "1,3", "equal_parts"),
    (X5, SORTED, "1", "0", "sorted == 1"),
    (ULTRA, SORTED, "1", "0", "sorted == 1"),
]


def maker(text, number):
    return next(n for n in parse_text(text.format(number)).nodes() if n.outputs[0].name == "n")


@pytest.mark.parametrize(("chip", "text", "inside", "outside", "limit"), APART)
def test_so_does_a_limit_on_neighbors_and_parts(chip, text, inside, outside, limit):
    target = read_target(chip)
    assert beyond(maker(text, inside), target) == ()
    assert [limit in each.breach.limit for each in beyond(maker(text, outside), target)] == [True]


# ONNX itself refuses a DepthToSpace of 6 channels.
UNSHOWN = {
    X3: set(),
    X5: {"channels % 4 == 0"},
    ULTRA: {"channels % 4 == 0"},
    **{chip: set() for chip in NASH},
}


@pytest.mark.parametrize("chip", UNSHOWN)
def test_every_limit_of_a_chip_is_shown(chip):
    nodes = [
        graph(fed, node, outside).nodes()[0]
        for _, fed, node, _, outside, _ in (case.values for case in CASES)
    ]
    nodes += [maker(text, outside) for _, text, _, outside, _ in APART]
    looks = [(node.op_type, facts_of(node)) for node in nodes]
    silent = {
        limit.holds
        for limit in read_target(chip).limits
        if not any(
            broken(limit.holds, look)
            for op_type, look in looks
            if not limit.operators or op_type in limit.operators
        )
    }
    assert silent == UNSHOWN[chip]


@pytest.mark.parametrize("name", target_names())
def test_every_condition_asks_for_facts_that_there_are(name):
    asked = {fact for limit in read_target(name).limits for fact in names(limit.holds)}
    assert asked <= FACTS.keys()


def test_every_chip_with_limits_is_shown():
    assert {name for name in target_names() if read_target(name).limits} == UNSHOWN.keys()


def test_every_fact_is_asked_for():
    limits = [limit for name in target_names() for limit in read_target(name).limits]
    assert FACTS.keys() == {fact for limit in limits for fact in names(limit.holds)}


def test_what_is_not_known_before_the_model_runs_breaks_no_limit():
    model = parse_text("a (float[1,N] x) => (float[] y) { y = Softplus(x) }")
    (node,) = model.nodes()
    assert beyond(node, read_target(X3)) == ()


def test_a_function_keeps_to_the_limits_of_its_parts():
    text = "a (float[{}] x) => (float[] y) {{ y = HardSwish(x) }}"
    for dims, parts in (("1,2048,1,1", []), ("1,2049,1,1", ["a (Mul)", "b (Add)", "y (Mul)"])):
        (node,) = parse_text(text.format(dims)).nodes()
        assert [limit.part for limit in beyond(node, read_target(X3))] == parts
