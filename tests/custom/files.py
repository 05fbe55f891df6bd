"""Operator files as a user writes them, and a model that needs them."""

# Word for word what the vendor's manual shows, but for what it computes.
VENDOR = """\
from horizon_nn.custom.op_registration import op_implement_register, op_shape_infer_register
import numpy as np

@op_implement_register("Shrink2")
class Shrink2(object):
    def __init__(self, kernel_size, bias):
        self._kernel_size = kernel_size
        self._bias = bias

    def compute(self, X):
        k = self._kernel_size
        n, c, h, w = X.shape
        return X.reshape(n, c, h // k, k, w // k, k).max(axis=(3, 5)) + self._bias

@op_shape_infer_register("Shrink2")
def infer_shape(inputs_shape):
    n, c, h, w = inputs_shape[0]
    return [[n, c, h // 2, w // 2]]
"""

OURS = VENDOR.replace("horizon_nn.custom.op_registration", "npumake.custom")

MODEL = """<ir_version: 8, opset_import: ["" : 13, "vendor.ops" : 1]>
agraph (float[1,1,8,8] image) => (float[1,3] y)
    <float[2,1,3,3] w = {0.5,-0.25,0.125,0.5,0.25,-0.5,0.75,0.5,-0.125,
                         0.25,0.5,-0.75,0.125,0.5,0.25,-0.25,0.5,0.125},
     float[18,3] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,
                      9,8,7,6,5,4,3,2,1,9,8,7,6,5,4,3,2,1,9,8,7,6,5,4,3,2,1},
     int64[2] flat = {1, -1}> {
    c = Conv<kernel_shape = [3, 3]>(image, w)
    r = Relu(c)
    s = vendor.ops.Shrink2<kernel_size = 2, bias = 0.5>(r)
    f = Reshape(s, flat)
    y = MatMul(f, v) }"""
