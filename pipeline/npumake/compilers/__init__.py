"""Compiles an integer program to the file of another runtime: TensorFlow Lite, and formats built
from it.

    flatfile       tensors and operators → the bytes of a .tflite
    tflite_builder the network under construction: layouts of tensors, and their transposes
    operators      the table: instruction → operators of TensorFlow Lite
    tflite         program → .tflite        vela, iree    .tflite → what a chip loads
    onnx_file      Q/DQ → the same graph with onnxruntime's integer kernels
    adapters       compilers in separate interpreters, most of them from Q/DQ
    read_back      the tensor types of a compiled file        widths    checks them
    handover_package    the input of a vendor's closed tool    vendor_tool    runs it

Scales and weights are those of the program; this room does not choose them.
"""
