"""Modes of what only moves or selects values: Pad, Slice, Gather, blocks, Concat, shapes."""

from __future__ import annotations

from operators.case import EVEN, ROWS, SEQUENCES, Mode, Shape, mode

AROUND = [0, 0, 1, 2, 0, 0, 2, 1]


def _pad(kind: str, pads: list[int], *shapes: Shape, **given: object) -> Mode:
    value = ", c" if "c" in given else ""
    return mode(f'y = Pad<mode="{kind}">(x, p{value})', *shapes, p=pads, **given)


PADS = {
    "constant, zero": _pad("constant", AROUND),
    "constant, 0.5": _pad("constant", AROUND, c=0.5),
    "constant, -3": _pad("constant", AROUND, c=-3.0),
    "constant, of channels": _pad("constant", [0, 1, 0, 0, 0, 2, 0, 0]),
    "constant, of rows": _pad("constant", [0, 1, 1, 0], *ROWS),
    "constant, negative": _pad("constant", [0, 0, -1, 0, 0, 0, 1, -2]),
    "edge": _pad("edge", AROUND),
    "edge by one": _pad("edge", [0, 0, 1, 1] * 2),
    "reflect": _pad("reflect", AROUND),
    "reflect of a sequence": _pad("reflect", [0, 1, 2, 0, 1, 1], (1, 4, 8), (2, 3, 5)),
    "wrap": _pad("wrap", AROUND),
}
FAR = 2**62


def _slice(s: object, e: object, a: object, t: object = None, *shapes: Shape) -> Mode:
    steps = {} if t is None else {"t": t}
    return mode(f"y = Slice(x, s, e, a{', t' if steps else ''})", *shapes, s=s, e=e, a=a, **steps)


SLICES = {
    "height": _slice([1], [5], [2]),
    "channels": _slice([1], [3], [1]),
    "height and width": _slice([1, 2], [6, 5], [2, 3]),
    "from the end": _slice([-3], [-1], [-2]),
    "beyond": _slice([-99], [FAR], [2]),
    "steps": _slice([1], [FAR], [2], [2]),
    "steps of two axes": _slice([0, 1], [FAR, FAR], [2, 3], [2, 2]),
    "steps of channels": _slice([0], [FAR], [1], [2]),
    "reversed width": _slice([-1], [-FAR], [3], [-1]),
    "reversed height": _slice([-1], [-FAR], [2], [-1]),
    "reversed channels": _slice([-1], [-FAR], [1], [-1]),
    "reversed height and width": _slice([-1, -1], [-FAR, -FAR], [2, 3], [-1, -1]),
    "reversed, by 2": _slice([-1], [-FAR], [2], [-2]),
    "reversed, in part": _slice([4], [1], [3], [-1]),
    "of rows, reversed": _slice([-1], [-FAR], [1], [-1], *ROWS),
    "of a sequence": _slice([1], [3], [1], None, *SEQUENCES),
    "axes in reversed order": _slice([1, 2], [5, 6], [3, 2]),
    "negative axes, backwards": _slice([-1, -2], [-FAR, 0], [-1, -2], [-2, -1]),
}


# Computed indices; x2 tells them apart.
PLACES = "v, p = TopK<axis=-1>(x2, k)"
THREE: dict[str, object] = {"x2": lambda s: s, "k": [3]}


def _sampled(options: str, **grid: object) -> Mode:
    (name,) = grid
    return mode(f"y = GridSample<{options}>(x, {name})", **grid)


GRIDS = {
    f"{kind}, {padding}, {how}": _sampled(
        f'mode="{kind}", padding_mode="{padding}", align_corners={corners}', **grid
    )
    for kind, padding, corners in (
        *(("linear", "zeros", 0), ("linear", "border", 1), ("linear", "reflection", 0)),
        *(("nearest", "zeros", 1), ("nearest", "border", 0), ("cubic", "zeros", 0)),
    )
    for how, grid in (
        ("constant", {"g": lambda s: (s[0], s[2], s[3], 2)}),
        ("computed", {"x2": lambda s: (s[0], s[2], s[3], 2)}),
    )
}


def _gather(axis: int, indices: object, *shapes: Shape) -> Mode:
    return mode(f"y = Gather<axis={axis}>(x, i)", *shapes, i=indices)


MOVES: dict[str, dict[str, Mode]] = {
    "Pad": PADS,
    "Slice": SLICES,
    "Split": {
        "channels": mode("y, rest = Split<axis=1>(x, n)", n=lambda s: [2, s[1] - 2]),
        "width": mode("rest, y = Split<axis=3>(x, n)", n=lambda s: [2, s[3] - 2]),
        "two halves, added": mode(
            "a, b = Split<axis=2>(x, n) y = Add(a, b)", (1, 4, 8, 6), (1, 3, 6, 5),
            n=lambda s: [s[2] // 2, s[2] // 2]),
    },
    "Gather": {
        "several channels": _gather(1, [2, 0, -1]),
        "several of the width": _gather(-1, [3, 3, 0, 1]),
        "one": _gather(2, 2),
        "a table of places": _gather(2, [[0, 1], [-2, 4]]),
        "of rows": _gather(0, [1, 0, 1], *ROWS),
        "at computed indices": mode(f"{PLACES} y = Gather<axis=1>(x, p)", *ROWS, **THREE),
        "at the place of the largest": mode(
            "p = ArgMax<axis=1, keepdims=0>(x2) y = Gather<axis=1>(x, p)", *SEQUENCES,
            x2=lambda s: (2, s[1])),
    },
    "Embedding": {
        "of a table": mode("n = Cast<to=7>(x2) c = Clip(n, low, high) g = Gather(table, c) "
                           "y = Add(g, x)",
                           (1, 4, 8), (1, 3, 5), x2=lambda s: (1, s[1]), low=0, high=9,
                           table=lambda s: (10, s[2])),
    },
    "GatherElements": {
        "": mode("y = GatherElements<axis=1>(x, i)", *ROWS, i=lambda s: [[1, 0, 2]] * s[0]),
        "from the end": mode("y = GatherElements<axis=-1>(x, i)", *ROWS,
                             i=lambda s: [[-1, 0, -2]] * s[0]),
        "at computed indices": mode(f"{PLACES} y = GatherElements<axis=-1>(x, p)", *ROWS, **THREE),
        "of channels at computed indices": mode(
            "v, p = TopK<axis=1>(x2, k) y = GatherElements<axis=1>(x, p)", *SEQUENCES,
            x2=lambda s: s, k=[2]),
        "at cast indices, negative": mode(
            "l = Clip(x2, low, high) p = Cast<to=6>(l) y = GatherElements<axis=1>(x, p)", *ROWS,
            x2=lambda s: s, low=-2.0, high=1.0),
    },
    "GatherND": {
        "": mode("y = GatherND(x, i)", *ROWS, i=[[0, 1], [1, 2]]),
        "at computed indices": mode(
            "l = Clip(x2, low, high) p = Cast<to=7>(l) y = GatherND(x, p)", *ROWS,
            x2=(6, 2), low=-2.0, high=1.0),
        "rows at computed indices": mode(
            "p = ArgMax<axis=-1>(x2) y = GatherND<batch_dims=1>(x, p)", *SEQUENCES,
            x2=lambda s: (s[0], 4, s[1])),
    },
    "ScatterND": {"": mode("y = ScatterND(x, i, u)", *ROWS, i=[[0, 1], [1, 2]], u=(2,))},
    "DepthToSpace": {
        "DCR": mode('y = DepthToSpace<blocksize=2, mode="DCR">(x)', (1, 8, 4, 6), (1, 12, 5, 3)),
        "CRD": mode('y = DepthToSpace<blocksize=2, mode="CRD">(x)', (1, 8, 4, 6), (1, 12, 5, 3)),
        "blocks of 3": mode("y = DepthToSpace<blocksize=3>(x)", (1, 9, 4, 6), (1, 18, 5, 2)),
        "CRD, blocks of 3": mode(
            'y = DepthToSpace<blocksize=3, mode="CRD">(x)', (1, 9, 4, 6), (1, 18, 5, 2)),
    },
    "SpaceToDepth": {
        "": mode("y = SpaceToDepth<blocksize=2>(x)", (1, 4, 8, 6), (1, 3, 10, 14)),
        "blocks of 3": mode("y = SpaceToDepth<blocksize=3>(x)", (1, 4, 9, 6), (1, 2, 3, 15)),
    },
    "Concat": {
        "channels": mode("y = Concat<axis=1>(x, x2)", x2=lambda s: s),
        "unequal ranges": mode("t = Tanh(x2) y = Concat<axis=1>(x, t)", x2=lambda s: s),
        "width": mode("y = Concat<axis=-1>(x, x2)", x2=lambda s: s),
        "a constant": mode("y = Concat<axis=1>(c, x)", c=lambda s: (1, 2, *s[2:])),
        "of rows": mode("y = Concat<axis=0>(x, x2)", *ROWS, x2=lambda s: s),
        "of itself": mode("y = Concat<axis=1>(x, x)"),
        "a negative axis": mode("y = Concat<axis=-3>(x, x2)", x2=lambda s: s),
    },
    "Reshape": {
        "to rows": mode("y = Reshape(x, to)", to=[1, -1]),
        "to a sequence": mode("y = Reshape(x, to)", to=lambda s: [1, s[1], s[2] * s[3]]),
        "of a sequence to an image": mode(
            "y = Reshape(x, to)", (1, 4, 8), (1, 3, 4), to=[1, -1, 2, 2]),
        "channels in groups": mode("y = Reshape(x, to)", EVEN, to=[1, 2, 2, 8, 6]),
        "shuffled channels": mode(
            "r = Reshape(x, to) t = Transpose<perm=[0,2,1,3,4]>(r) y = Reshape(t, back)", EVEN,
            to=[1, 2, 2, 8, 6], back=[1, 4, 8, 6]),
    },
    "Flatten": {"axis 1": mode("y = Flatten(x)"), "axis 2": mode("y = Flatten<axis=2>(x)")},
    "Squeeze": {
        "": mode("y = Squeeze(x, a)", (1, 4, 1, 6), (1, 3, 1, 5), a=[2]),
        "axes in reversed order": mode(
            "y = Squeeze(x, a)", (1, 4, 1, 6), (1, 3, 1, 5), a=[-2, 0]),
    },
    "Unsqueeze": {
        "": mode("y = Unsqueeze(x, a)", *SEQUENCES, a=[1]),
        "axes in reversed order": mode("y = Unsqueeze(x, a)", *ROWS, a=[-1, 0]),
    },
    "Transpose": {
        "to NHWC": mode("y = Transpose<perm=[0,2,3,1]>(x)"),
        "height and width": mode("y = Transpose<perm=[0,1,3,2]>(x)"),
        "of rows": mode("y = Transpose<perm=[1,0]>(x)", *ROWS),
        "of a sequence": mode("y = Transpose<perm=[0,2,1]>(x)", *SEQUENCES),
        "of a volume": mode("y = Transpose<perm=[0,2,1,4,3]>(x)", (1, 2, 3, 4, 6)),
        "all axes reversed": mode("y = Transpose(x)"),
        "all axes of a sequence reversed": mode("y = Transpose(x)", *SEQUENCES),
    },
    "Tile": {
        "height and width": mode("y = Tile(x, n)", n=[1, 1, 2, 3]),
        "channels": mode("y = Tile(x, n)", n=[1, 2, 1, 1]),
        "of rows": mode("y = Tile(x, n)", *ROWS, n=[2, 1]),
    },
    "Expand": {
        "height and width": mode("y = Expand(x, to)", (1, 4, 1, 1), (1, 3, 1, 5), to=[1, 1, 7, 5]),
        "a new axis": mode("y = Expand(x, to)", (1, 8), (3, 5), to=lambda s: [2, *s]),
    },
    "ReverseSequence": {"": mode(
        "y = ReverseSequence<batch_axis=0, time_axis=1>(x, n)", (2, 4, 8), (2, 3, 5), n=[3, 2])},
    "Trilu": {"": mode("y = Trilu(x)")},
    "Einsum": {"": mode('y = Einsum<equation="bij,bjk->bik">(x, x2)', (1, 4, 8), (2, 3, 5),
                        x2=lambda s: (s[0], s[2], 6))},
    "GridSample": {"": mode("y = GridSample(x, g)", g=lambda s: (1, 3, 3, 2)), **GRIDS},
    "ConstantOfShape": {"": mode("c = ConstantOfShape(n) y = Add(x, c)", n=lambda s: list(s))},
}  # fmt: skip
