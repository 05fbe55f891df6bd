"""An integer program as the file of another runtime: TensorFlow Lite, and what is made from that.

    flatfile    tensors and operators → the bytes of a .tflite
    draft       the network being drawn: which layout each tensor has, what is transposed when
    operators   the table: instruction → operators of TensorFlow Lite
    tflite      program → .tflite        vela, iree    .tflite → what a chip loads
    onnx_file   Q/DQ → the same file with onnxruntime's integer kernels in it
    adapters    the same by compilers in interpreters of their own, most of them from Q/DQ
    read_back   the types of tensors in a file        widths    held to the plan
    handed      what a vendor's closed tool is given        vendor_tool    and what it makes

It refuses to know how the numbers came about: grids and weights are those of the program.
"""
