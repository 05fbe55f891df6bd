"""Functions as models spell them out; npumake may fuse the nodes of each into one."""

from __future__ import annotations

CONSTANTS = """float three = {3}, float six = {6}, float zero = {0}, float one = {1},
    float two = {2},
    float half = {0.5}, float sixth = {0.16666667}, float root2 = {1.4142135}, float cube = {3},
    float iroot2 = {0.70710678}, float k = {0.7978846}, float c = {0.044715}, float e = {0.00001},
    float slope = {1.702}, float beta = {0.75}"""

ERF = "a = Div(x, root2)  e1 = Erf(a)  p = Add(e1, one)"
TANH = "b = Mul(c, a)  d = Add(x, b)  f = Mul(d, k)  g = Tanh(f)  p = Add(one, g)"
CENTERED = "m = ReduceMean<axes=[-1]>(x)  d = Sub(x, m)"
ROOT = "v = ReduceMean<axes=[-1]>(s)  w = Add(v, e)  r = Sqrt(w)"
NORM = f"{CENTERED}  s = Mul(d, d)  {ROOT}  n = Div(d, r)"
IMAGE_MEAN = "m = ReduceMean<axes=[2,3]>(x)  d = Sub(x, m)  s = Mul(d, d)"
IMAGE_NORM = f"{IMAGE_MEAN}  v = ReduceMean<axes=[2,3]>(s)  w = Add(v, e)  r = Sqrt(w)"

ELEMENTWISE = {
    "HardSwish, divided last": "a = Add(x, three)  b = Clip(a, zero, six)  m = Mul(x, b)"
    "  y = Div(m, six)",
    "HardSwish, multiplied": "a = Mul(x, sixth)  b = Add(a, half)  m = Clip(b, zero, one)"
    "  y = Mul(x, m)",
    "HardSwish, Max and Min": "a = Add(x, three)  b = Max(a, zero)  m = Min(b, six)  n = Mul(x, m)"
    "  y = Mul(n, sixth)",
    "HardSwish, HardSigmoid": "a = HardSigmoid<alpha=0.16666667, beta=0.5>(x)  y = Mul(x, a)",
    "HardSigmoid": "a = Add(x, three)  b = Clip(a, zero, six)  y = Div(b, six)",
    "HardSigmoid, falling": "a = Mul(x, half)  b = Sub(one, a)  d = Clip(b, zero, two)"
    "  y = Mul(d, half)",
    "Gelu, halved last": f"{ERF}  m = Mul(x, p)  y = Mul(m, half)",
    "Gelu, halved first": f"{ERF}  h = Mul(x, half)  y = Mul(h, p)",
    "Gelu, halved inside": f"{ERF}  h = Mul(half, p)  y = Mul(x, h)",
    "Gelu, multiplied": "a = Mul(x, iroot2)  e1 = Erf(a)  p = Add(e1, one)  m = Mul(x, p)"
    "  y = Div(m, two)",
    "Gelu, Tanh": f"a = Pow(x, cube)  {TANH}  m = Mul(x, p)  y = Mul(half, m)",
    "Gelu, Tanh and products": f"q = Mul(x, x)  a = Mul(q, x)  {TANH}  h = Mul(x, half)"
    "  y = Mul(h, p)",
    "Gelu, Sigmoid": "a = Mul(x, slope)  s = Sigmoid(a)  y = Mul(x, s)",
    "SiLU": "s = Sigmoid(x)  y = Mul(x, s)",
    "SiLU, reversed": "s = Sigmoid(x)  y = Mul(s, x)",
    "gate": "s = Sigmoid(x)  t = Tanh(x)  y = Mul(s, t)",
    "Mish": "a = Softplus(x)  t = Tanh(a)  y = Mul(x, t)",
    "Mish, Exp and Log": "a = Exp(x)  b = Add(a, one)  l = Log(b)  t = Tanh(l)  y = Mul(x, t)",
    "Softplus": "a = Exp(x)  b = Add(a, one)  y = Log(b)",
}
ROWS = {
    "LayerNorm": f"{NORM}  h = Mul(n, gamma)  y = Add(h, shift)",
    "LayerNorm, Pow": f"{CENTERED}  s = Pow(d, two)  {ROOT}  n = Div(d, r)  h = Mul(n, gamma)"
    "  y = Add(h, shift)",
    "LayerNorm, Reciprocal": f"{CENTERED}  s = Mul(d, d)  {ROOT}  i = Reciprocal(r)"
    "  j = Mul(i, gamma)  n = Mul(d, j)  y = Add(n, shift)",
    "LayerNorm, squares": f"{CENTERED}  s = ReduceSumSquare<axes=[-1]>(d)  v = Mul(s, quarter)"
    "  w = Add(v, e)  r = Sqrt(w)  n = Div(d, r)  h = Mul(n, gamma)  y = Add(h, shift)",
    "LayerNorm, no bias": f"{NORM}  y = Mul(n, gamma)",
    "LayerNorm, no scale": NORM.replace("n = Div", "y = Div"),
    "RMSNorm": f"s = Mul(x, x)  {ROOT}  n = Div(x, r)  y = Mul(n, gamma)",
    "RMSNorm, Pow": f"s = Pow(x, two)  {ROOT}  i = Reciprocal(r)  n = Mul(x, i)  y = Mul(n, gamma)",
    "Softmax": "m = ReduceMax<axes=[-1]>(x)  d = Sub(x, m)  f = Exp(d)  s = ReduceSum(f, last)"
    "  y = Div(f, s)",
    "LogSoftmax": "m = ReduceMax<axes=[-1]>(x)  d = Sub(x, m)  f = Exp(d)  s = ReduceSum(f, last)"
    "  l = Log(s)  y = Sub(d, l)",
    "L2": "s = Mul(x, x)  v = ReduceSum(s, last)  r = Sqrt(v)  w = Clip(r, e)  y = Div(x, w)",
    "attention": "t = Transpose<perm={swap}>(x)  f = MatMul(x, t)  g = Mul(f, half)"
    "  s = Softmax<axis=-1>(g)  y = MatMul(s, x)",
    "gated rows": "u = Mul(x, gamma)  s = Sigmoid(u)  h = Mul(u, s)  y = Mul(h, x)",
}
IMAGES = {
    "InstanceNorm": f"{IMAGE_NORM}  n = Div(d, r)  h = Mul(n, scale)  y = Add(h, bias)",
    "BatchNorm": "d = Sub(x, bias)  n = Div(d, scale)  h = Mul(n, scale)  y = Add(h, bias)",
    "squeeze and excite": "m = GlobalAveragePool(x)  a = Add(m, three)  b = Clip(a, zero, six)"
    "  g = Div(b, six)  y = Mul(x, g)",
    "LRN": "s = Mul(x, x)  t = Transpose<perm=[0,2,3,1]>(s)"
    "  v = ReduceMean<axes=[-1]>(t)  u = Transpose<perm=[0,3,1,2]>(v)  w = Add(u, one)"
    "  p = Pow(w, beta)  y = Div(x, p)",
}
SHAPES = ((1, 4, 6, 6), (1, 5, 4), (3, 4), (1, 64, 24, 24), (1, 1, 4), (2, 3, 5, 8), (1, 2, 1, 40))
FORMS = (*ELEMENTWISE, *ROWS, *IMAGES)


def shapes_of(form: str) -> tuple[tuple[int, ...], ...]:
    return tuple(s for s in SHAPES if len(s) == 4) if form in IMAGES else SHAPES


def spelled_form(form: str, shape: tuple[int, ...]) -> str:
    """The model, at opset 11, in ONNX's text."""
    body = (ELEMENTWISE | ROWS | IMAGES)[form]
    rank, size = len(shape), shape[-1]
    swap = [*range(rank - 2), rank - 1, rank - 2]
    row, dims = ", ".join(["2"] * size), ",".join(map(str, shape))
    channels = shape[1]
    column = ", ".join(["3"] * channels)
    image = f"""float[1,{channels},1,1] scale = {{{column}}},
        float[1,{channels},1,1] bias = {{{column}}}"""
    constants = f"""{CONSTANTS}, float[{size}] gamma = {{{row}}}, float[{size}] shift = {{{row}}},
        float quarter = {{{1 / size}}}, int64[1] last = {{{rank - 1}}}, {image}"""
    opset = 13 if "ReduceSum(" in body else 11  # the first whose axes are an input
    body = body.replace("{swap}", str(swap))
    return f"""<ir_version: 6, opset_import: ["" : {opset}]>
        f (float[{dims}] x) => (float[] y) <{constants}> {{ {body} }}"""
