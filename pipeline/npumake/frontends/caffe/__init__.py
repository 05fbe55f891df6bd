"""Caffe 1.0: reads a .prototxt and its .caffemodel into a Graph.

It supports the three forms of Caffe's files, and computes each layer as in the test phase. An
unknown layer, or weights of another network, raise GraphError.
"""

from npumake.frontends.caffe.network import LAYERS, read_caffe

__all__ = ["LAYERS", "read_caffe"]
