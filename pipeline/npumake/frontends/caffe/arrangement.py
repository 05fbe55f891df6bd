"""Layers that move values, select them, or multiply matrices."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from npumake.frontends.caffe.site import MAX_AXES, LayerSite, Shape
from npumake.graph import TensorSpec, Value, shape


def inner_product(site: LayerSite) -> Value:
    """y = x W^T + b over the axes from `axis` on, flattened to one vector."""
    x, param = site.bottom(), site.parameters("inner_product_param")
    dims = shape(x)
    axis = site.axis(param.axis, len(dims))
    m, k, n = prod(dims[:axis]), prod(dims[axis:]), param.num_output
    if not n:
        raise site.error("has no num_output")
    weight = (k, n) if param.transpose else (n, k)
    arrays = site.blobs(weight, *([(n,)] if param.bias_term else []))
    constants = [
        site.constant(label, v) for label, v in zip(("weight", "bias"), arrays, strict=False)
    ]
    flat = _matrix(site, x, axis, (m, k))
    y = site.node("Gemm", [flat, *constants], (m, n), transB=0 if param.transpose else 1)
    return site.reshaped(y, (*dims[:axis], n))


def matrix_product(site: LayerSite) -> Value:
    a, b = site.bottoms(2)
    param = site.parameters("matmul_param")
    a = _transposed(site, a) if param.transpose_a else a
    b = _transposed(site, b) if param.transpose_b else b
    (*batch, m, k), (*other, j, n) = _pair(site, a), _pair(site, b)
    if k != j or batch != other:
        raise site.error(f"multiplies {list(shape(a))} by {list(shape(b))}")
    return site.node("MatMul", [a, b], (*batch, m, n))


def concat(site: LayerSite) -> Value:
    xs, param = site.bottoms(1, 1 << 16), site.parameters("concat_param")
    dims = [shape(x) for x in xs]
    along = param.concat_dim if param.HasField("concat_dim") else param.axis
    axis = site.axis(along, len(dims[0]))
    if len({(*d[:axis], -1, *d[axis + 1 :]) for d in dims}) > 1:
        raise site.error(f"joins shapes that differ: {', '.join(str(list(d)) for d in dims)}")
    out_dims = (*dims[0][:axis], sum(d[axis] for d in dims), *dims[0][axis + 1 :])
    return site.node("Concat", xs, out_dims, axis=axis)


def slice_(site: LayerSite) -> tuple[Value, ...]:
    """Cuts at the slice points, or into equal parts without them."""
    x, param = site.bottom(), site.parameters("slice_param")
    dims = shape(x)
    along = param.slice_dim if param.HasField("slice_dim") else param.axis
    axis = site.axis(along, len(dims))
    size, count = dims[axis], site.tops
    points = tuple(param.slice_point)
    if not points and count and size % count == 0:
        points = tuple(range(size // count, size, size // count))
    cuts = (0, *points, size)
    if len(cuts) != count + 1 or any(a >= b for a, b in pairwise(cuts)):
        raise site.error(f"cuts {size} at {list(points)} into {count} parts")
    parts = [b - a for a, b in pairwise(cuts)]
    outputs = [
        TensorSpec(str(i), (*dims[:axis], n, *dims[axis + 1 :])) for i, n in enumerate(parts)
    ]
    return site.nodes("Split", [x, site.numbers("split", parts)], outputs, axis=axis)


def crop(site: LayerSite) -> Value:
    """Crops the first blob at `offset` to the size of the second, from `axis` on."""
    x, like = site.bottoms(2)
    param, dims, like_dims = site.parameters("crop_param"), shape(x), shape(like)
    axis = site.axis(param.axis, len(dims))
    axes, offsets = range(axis, len(dims)), tuple(param.offset) or (0,)
    if len(offsets) == 1:
        offsets *= len(axes)
    if len(offsets) != len(axes) or len(like_dims) != len(dims):
        raise site.error(f"has {len(offsets)} offsets for {len(axes)} axes")
    ends = [offset + like_dims[a] for offset, a in zip(offsets, axes, strict=True)]
    if any(end > dims[a] for end, a in zip(ends, axes, strict=True)):
        raise site.error(f"cuts {list(like_dims)} at {list(offsets)} out of {list(dims)}")
    inputs = [
        x,
        site.numbers("starts", offsets),
        site.numbers("ends", ends),
        site.numbers("axes", tuple(axes)),
    ]
    return site.node("Slice", inputs, (*dims[:axis], *like_dims[axis:]))


def reshape(site: LayerSite) -> Value:
    """0 keeps a dimension, -1 infers one; only `num_axes` axes from `axis` on are replaced."""
    x, param = site.bottom(), site.parameters("reshape_param")
    dims, new_dims = shape(x), tuple(param.shape.dim)
    rank = len(dims)
    if len(new_dims) > MAX_AXES:
        raise site.error(f"gives a blob of {len(new_dims)} dimensions, more than Caffe supports")
    start = param.axis if param.axis >= 0 else rank + param.axis + 1
    end = rank if param.num_axes == -1 else start + param.num_axes
    if not 0 <= start <= end <= rank or min(new_dims, default=0) < -1 or new_dims.count(-1) > 1:
        raise site.error(f"cannot make {list(new_dims)} of {list(dims)}")
    if any(dim == 0 and start + i >= rank for i, dim in enumerate(new_dims)):
        raise site.error(f"keeps a dimension that {list(dims)} does not have")
    middle = [dims[start + i] if dim == 0 else dim for i, dim in enumerate(new_dims)]
    out_dims = [*dims[:start], *middle, *dims[end:]]
    if -1 in out_dims:
        rest = -prod(out_dims)
        out_dims[out_dims.index(-1)] = prod(dims) // rest
    if prod(out_dims) != prod(dims):
        raise site.error(f"cannot make {list(new_dims)} of {list(dims)}")
    return site.node("Reshape", [x, site.numbers("shape", out_dims)], tuple(out_dims))


def flatten(site: LayerSite) -> Value:
    x, param = site.bottom(), site.parameters("flatten_param")
    dims = shape(x)
    start, end = (site.axis(axis, len(dims)) for axis in (param.axis, param.end_axis))
    if end < start:
        raise site.error(f"flattens axes {start} to {end}")
    out_dims = (*dims[:start], prod(dims[start : end + 1]), *dims[end + 1 :])
    if start == 1 and len(out_dims) == 2:
        return site.node("Flatten", [x], out_dims, axis=1)
    return site.node("Reshape", [x, site.numbers("shape", out_dims)], out_dims)


def permute(site: LayerSite) -> Value:
    """Axes that `order` omits follow at the end."""
    x, order = site.bottom(), tuple(site.parameters("permute_param").order)
    dims = shape(x)
    full = (*order, *(axis for axis in range(len(dims)) if axis not in order))
    if sorted(full) != list(range(len(dims))):
        raise site.error(f"orders the axes {list(order)} of {len(dims)}")
    return site.node("Transpose", [x], tuple(dims[axis] for axis in full), perm=full)


def pass_through(site: LayerSite) -> Value:
    """Space to depth: channel order is row in the block, column in the block, channel."""
    x, param = site.bottom(), site.parameters("pass_through_param")
    block, dims = param.block_height, shape(x)
    if (
        len(dims) != 4
        or not block
        or param.block_width != block
        or dims[2] % block
        or dims[3] % block
    ):
        raise site.error(f"takes blocks of {block} x {param.block_width} from {list(dims)}")
    n, c, h, w = dims
    out_dims = (n, c * block * block, h // block, w // block)
    return site.node("SpaceToDepth", [x], out_dims, blocksize=block)


def arg_max(site: LayerSite) -> Value:
    """Indices of the `top_k` largest values, as float: along `axis`, else per sample.

    Without an axis the result is (n, 1, top_k), or (n, 2, top_k) with indices above values. For
    `top_k` = 1 the last of equal values wins, as in Caffe.
    """
    x, param = site.bottom(), site.parameters("argmax_param")
    dims, along = shape(x), param.HasField("axis")
    axis = site.axis(param.axis, len(dims)) if along else 1
    first = dims[site.axis(0, len(dims))]
    flat = x if along else site.reshaped(x, (first, prod(dims[1:])))
    size = shape(flat)[axis]
    if not 1 <= param.top_k <= size:
        raise site.error(f"needs the {param.top_k} largest of {size} values")
    out_dims = tuple(param.top_k if a == axis else d for a, d in enumerate(shape(flat)))
    where, values = _largest(site, flat, axis, out_dims)
    if along:
        return values if param.out_max_val else where
    rank = max(3, len(dims))
    rows = [site.reshaped(y, (first, 1, param.top_k, *(1,) * (rank - 3))) for y in (where, values)]
    if not param.out_max_val:
        return rows[0]
    return site.node("Concat", rows, (first, 2, *shape(rows[0])[2:]), axis=1)


def _largest(site: LayerSite, x: Value, axis: int, out_dims: Shape) -> tuple[Value, Value]:
    """(indices, values) of the largest along `axis`."""
    if out_dims[axis] == 1:
        index = site.node(
            "ArgMax", [x], out_dims, "int64", axis=axis, keepdims=1, select_last_index=1
        )
        values = site.node("ReduceMax", [x], out_dims, axes=[axis], keepdims=1)
    else:
        outputs = [TensorSpec("values", out_dims), TensorSpec("index", out_dims, "int64")]
        count = site.numbers("k", [out_dims[axis]])
        values, index = site.nodes("TopK", [x, count], outputs, axis=axis)
    return site.cast(index, "float32"), values


def _matrix(site: LayerSite, x: Value, axis: int, out_dims: Shape) -> Value:
    if axis == 1 and len(shape(x)) > 2:
        return site.node("Flatten", [x], out_dims, axis=1)
    return site.reshaped(x, out_dims)


def _pair(site: LayerSite, x: Value) -> Shape:
    if len(shape(x)) < 2:
        raise site.error(f"multiplies a blob of shape {list(shape(x))}, which is not a matrix")
    return shape(x)


def _transposed(site: LayerSite, x: Value) -> Value:
    *batch, m, k = _pair(site, x)
    perm = (*range(len(batch)), len(batch) + 1, len(batch))
    return site.node("Transpose", [x], (*batch, k, m), perm=perm)
