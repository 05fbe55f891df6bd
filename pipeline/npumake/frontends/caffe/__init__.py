"""Caffe 1.0: a .prototxt and its .caffemodel become a Graph.

It knows the messages of Caffe's files in their three forms and what each layer computes in the
test phase. It refuses to guess: a layer it does not know, or weights of another network, are a
GraphError.
"""

from npumake.frontends.caffe.network import LAYERS, read_caffe

__all__ = ["LAYERS", "read_caffe"]
