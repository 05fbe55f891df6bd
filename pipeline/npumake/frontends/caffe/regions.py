"""Layers that pool regions of interest: rois is (r, 5), each (batch index, x1, y1, x2, y2).

Position-sensitive, with scale c and p x p bins: a region starts at c round(x1), ends at c
(round(x2) + 1) and is at least 0.1 wide; its bin j covers the pixels x with

    floor(start + j width / p) <= x < ceil(start + (j + 1) width / p)

Each bin averages its own channel, (d p + i) p + j for output d and bin (i, j). (R-FCN.) With masks
M over rows and columns this is a sum of products: out[r,d,i,j] = sum over y, x of My[r,i,y]
Mx[r,j,x] F[d,i,j,y,x] / (|My[r,i]| |Mx[r,j]|).
"""

from __future__ import annotations

from math import prod

import numpy as np

from npumake.frontends.caffe.site import LayerSite
from npumake.graph import Value, shape


def roi_pooling(site: LayerSite) -> Value:
    x, rois = site.bottoms(2)
    param = site.parameters("roi_pooling_param")
    rows, bins = _rois(site, x, rois), (param.pooled_h, param.pooled_w)
    out_dims = (shape(rows)[0], shape(x)[1], *bins)
    return site.node(
        "MaxRoiPool", [x, rows], out_dims, pooled_shape=bins, spatial_scale=param.spatial_scale
    )


def position_sensitive_pooling(site: LayerSite) -> Value:
    x, rois = site.bottoms(2)
    param = site.parameters("psroi_pooling_param")
    rows, p, d = _rois(site, x, rois), param.group_size, param.output_dim
    n, c, h, w = shape(x)
    if n != 1:
        raise site.error(f"pools regions of {n} images; only one is supported")
    if not p or not d or c != d * p * p:
        raise site.error(f"gives {d} channels of {p} x {p} bins from {c}")
    site.check_count((d, p, p, h, w))
    out_dims = (shape(rows)[0], d, p, p)
    columns = _masks(site, rows, (1, 3), w)
    lines = _masks(site, rows, (2, 4), h)
    features = site.reshaped(x, (d, p, p, h, w))
    return site.node("Einsum", [lines, features, columns], out_dims, equation="riy,dijyx,rjx->rdij")


def _rois(site: LayerSite, x: Value, rois: Value) -> Value:
    """The regions as (r, 5)."""
    dims = shape(rois)
    if len(shape(x)) != 4 or prod(dims[1:]) != 5:
        raise site.error(f"pools regions {list(dims)} of {list(shape(x))}")
    return site.reshaped(rois, (dims[0], 5))


def _masks(site: LayerSite, rois: Value, ends: tuple[int, int], size: int) -> Value:
    """(r, p, size): the weight of each pixel in each bin; the weights of a bin sum to 1."""
    param = site.parameters("psroi_pooling_param")
    r, p, scale = shape(rois)[0], param.group_size, param.spatial_scale
    first, last = (_column(site, rois, column) for column in ends)
    start = site.scaled(first, scale)
    end = site.scaled(last, scale, scale)
    width = site.node("Sub", [end, start], (r, 1, 1))
    width = site.node("Max", [width, site.constant("least", 0.1)], (r, 1, 1))
    bins = (np.arange(p).reshape(1, p, 1) + np.array([[[0]], [[1]]])) / p
    low, high = (
        site.node(
            "Add",
            [site.node("Mul", [width, site.constant("bins", edge[None])], (r, p, 1)), start],
            (r, p, 1),
        )
        for edge in bins
    )
    pixels = site.constant("pixels", np.arange(size, dtype=np.float32).reshape(1, 1, size))
    above = site.node("Floor", [low], (r, p, 1))
    below = site.node("Ceil", [high], (r, p, 1))
    mask_dims = (r, p, size)
    outside = site.node("Less", [pixels, above], mask_dims, "bool")
    reached = site.node("Less", [pixels, below], mask_dims, "bool")
    inside = site.node(
        "And", [site.node("Not", [outside], mask_dims, "bool"), reached], mask_dims, "bool"
    )
    mask = site.cast(inside, "float32")
    covered = site.node("ReduceSum", [mask, site.numbers("axes", [2])], (r, p, 1), keepdims=1)
    # An empty bin is 0, not 0 / 0.
    covered = site.node("Max", [covered, site.constant("one", 1.0)], (r, p, 1))
    return site.node("Div", [mask, covered], mask_dims)


def _column(site: LayerSite, rois: Value, column: int) -> Value:
    """One rounded corner coordinate per region, (r, 1, 1); halves round up, as in C."""
    r = shape(rois)[0]
    index = site.numbers("column", [column])
    corner = site.node("Gather", [rois, index], (r, 1), axis=1)
    rounded = site.node("Floor", [site.scaled(corner, 1.0, 0.5)], (r, 1))
    return site.reshaped(rounded, (r, 1, 1))
