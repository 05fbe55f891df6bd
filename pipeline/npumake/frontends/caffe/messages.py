"""Message definitions of Caffe's two files, and their parsers.

A .prototxt is protobuf text: fields are matched by name, and the numbers are ours. Unlisted fields
are skipped: fillers, learning rates, engines, and parameters of unsupported layers.

A .caffemodel is protobuf binary; only names and weights are read, with Caffe's numbers. `data` is
declared as bytes, which equals packed floats on the wire, so a blob is a view of the file instead
of a Python number per weight.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from npumake.errors import GraphError, Place

Message = Any  # the classes are created below, without static types

MAX_TEXT_BYTES = 4 << 20  # bytes; the largest published networks need a fifth of it
MAX_DEPTH = 32  # of nested braces; Caffe's own messages nest 5 deep

ENUMS = {
    "Phase": "TRAIN TEST",
    "PoolMethod": "MAX AVE STOCHASTIC",
    "EltwiseOp": "PROD SUM MAX",
    "ReductionOp": "SUM ASUM SUMSQ MEAN",
    "NormRegion": "ACROSS_CHANNELS WITHIN_CHANNEL",
    "V1Type": """NONE ABSVAL ACCURACY ARGMAX BNLL CONCAT CONTRASTIVE_LOSS CONVOLUTION DATA
        DECONVOLUTION DROPOUT DUMMY_DATA EUCLIDEAN_LOSS ELTWISE EXP FLATTEN HDF5_DATA HDF5_OUTPUT
        HINGE_LOSS IM2COL IMAGE_DATA INFOGAIN_LOSS INNER_PRODUCT LRN MEMORY_DATA
        MULTINOMIAL_LOGISTIC_LOSS MVN POOLING POWER RELU SIGMOID SIGMOID_CROSS_ENTROPY_LOSS SILENCE
        SOFTMAX SOFTMAX_LOSS SPLIT SLICE TANH WINDOW_DATA THRESHOLD""",
}

_PARAMETERS = """
    string name, string* bottom, string* top, Rule* include, Rule* exclude,
    ArgMax argmax_param, Axis bias_param, BatchNorm batch_norm_param, Concat concat_param,
    Convolution convolution_param, Crop crop_param, Eltwise eltwise_param, Elu elu_param,
    Exponent exp_param, Flatten flatten_param, InnerProduct inner_product_param,
    Shapes input_param, Exponent log_param, Lrn lrn_param, MatMul matmul_param, Mvn mvn_param,
    Normalize norm_param, PassThrough pass_through_param, Permute permute_param,
    Pooling pooling_param, Power power_param, PRelu prelu_param, PsRoi psroi_pooling_param,
    Recurrent recurrent_param, Reduction reduction_param, Relu relu_param, Reshape reshape_param,
    Roi roi_pooling_param, RRelu rrelu_param, Scale scale_param, Slice slice_param,
    Softmax softmax_param, Spp spp_param, Threshold threshold_param, Upsample upsample_param
"""
_WINDOW = """
    uint32* kernel_size, uint32 kernel_h, uint32 kernel_w, uint32* stride, uint32 stride_h,
    uint32 stride_w, uint32* pad, uint32 pad_h, uint32 pad_w
"""

# type[*] name [number] [= default]; numbers default to the position.
MESSAGES = {
    "Net": """string name, string* input, int64* input_dim, Dims* input_shape, V1Layer* layers,
        Layer* layer""",
    "Dims": "int64* dim 1",
    "Layer": "string type, " + _PARAMETERS,
    "V1Layer": "V1Type type, V0Layer layer, " + _PARAMETERS,
    "V0Layer": """string name, string type, uint32 num_output, bool biasterm = true,
        uint32 pad = 0, uint32 kernelsize, uint32 group = 1, uint32 stride = 1, PoolMethod pool,
        uint32 local_size = 5, float alpha = 1, float beta = 0.75, float k = 1,
        uint32 concat_dim = 1""",
    "Rule": """Phase phase, int64 min_level, int64 max_level, string* stage, string* not_stage""",
    "ArgMax": "bool out_max_val, uint32 top_k = 1, int64 axis",
    "Axis": "int64 axis = 1, int64 num_axes = 1",
    "BatchNorm": "bool use_global_stats = true, float eps = 1e-5",
    "Concat": "int64 axis = 1, uint32 concat_dim = 1",
    "Convolution": """uint32 num_output, bool bias_term = true, uint32 group = 1, int64 axis = 1,
        uint32* dilation, """
    + _WINDOW,
    "Crop": "int64 axis = 2, uint32* offset",
    "Eltwise": "EltwiseOp operation = SUM, float* coeff",
    "Elu": "float alpha = 1",
    "Exponent": "float base = -1, float scale = 1, float shift = 0",
    "Flatten": "int64 axis = 1, int64 end_axis = -1",
    "InnerProduct": """uint32 num_output, bool bias_term = true, int64 axis = 1,
        bool transpose = false""",
    "Shapes": "Dims* shape",
    "Lrn": """uint32 local_size = 5, float alpha = 1, float beta = 0.75, float k = 1,
        NormRegion norm_region = ACROSS_CHANNELS""",
    "MatMul": "bool transpose_a = false, bool transpose_b = false",
    "Mvn": "bool normalize_variance = true, bool across_channels = false, float eps = 1e-9",
    "Normalize": "bool across_spatial = true, bool channel_shared = true, float eps = 1e-10",
    "PassThrough": "uint32 block_height = 2, uint32 block_width = 2",
    "Permute": "uint32* order",
    "Pooling": "PoolMethod pool = MAX, bool global_pooling = false, " + _WINDOW,
    "Power": "float power = 1, float scale = 1, float shift = 0",
    "PRelu": "bool channel_shared = false",
    "PsRoi": "float spatial_scale, uint32 output_dim, uint32 group_size",
    "Recurrent": "uint32 num_output, bool expose_hidden = false",
    "Reduction": "ReductionOp operation = SUM, int64 axis = 0, float coeff = 1",
    "Relu": "float negative_slope = 0",
    "Reshape": "Dims shape, int64 axis = 0, int64 num_axes = -1",
    "Roi": "uint32 pooled_h = 0, uint32 pooled_w = 0, float spatial_scale = 1",
    "RRelu": "float lower = 0.125, float upper = 0.33333334",
    "Scale": "int64 axis = 1, int64 num_axes = 1, bool bias_term = false",
    "Slice": "int64 axis = 1, uint32 slice_dim = 1, uint32* slice_point",
    "Softmax": "int64 axis = 1",
    "Spp": "uint32 pyramid_height, PoolMethod pool = MAX",
    "Threshold": "float threshold = 0",
    "Upsample": """uint32 scale = 2, uint32 scale_h, uint32 scale_w, uint32 upsample_h,
        uint32 upsample_w""",
    # The fields that are read from a .caffemodel.
    "TrainedNet": "V1Trained* layers 2, Trained* layer 100",
    "Trained": "bytes name 1, Blob* blobs 7",
    "V1Trained": "V0Trained layer 1, bytes name 4, Blob* blobs 6",
    "V0Trained": "bytes name 1, Blob* blobs 50",
    "Blob": """int32 num 1, int32 channels 2, int32 height 3, int32 width 4, bytes* data 5,
        Dims shape 7, bytes* double_data 8""",
}

_PACKAGE = "npumake"
_FIELD = re.compile(r"(\w+)(\*?) (\w+)(?: (\d+))?(?: = (\S+))?")
_NESTING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*|[{}<>]")
_SCALARS = {
    kind: getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}")
    for kind in ("int32", "int64", "uint32", "float", "bool", "string", "bytes")
}


def parse_net(data: bytes, name: str) -> Message:
    """The `Net` of a .prototxt. Raises GraphError, with line and column."""
    if len(data) > MAX_TEXT_BYTES:
        raise GraphError(f"the network is longer than {MAX_TEXT_BYTES >> 20} MiB of text", name)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GraphError("not a Caffe network: it is not text", name) from error
    _refuse_deep(text, name)
    net = _CLASSES["Net"]()
    try:
        text_format.Parse(text, net, allow_unknown_field=True)
    except text_format.ParseError as error:
        place = Place(name, error.GetLine() or 0, error.GetColumn() or 0)
        raise GraphError(f"not a Caffe network: {_parser_message(error)}", place) from error
    return net


def parse_weights(data: bytes, name: str) -> Message:
    """The `TrainedNet` of a .caffemodel. Raises GraphError."""
    net = _CLASSES["TrainedNet"]()
    try:
        net.ParseFromString(data)
    except DecodeError as error:
        raise GraphError(
            "not a .caffemodel: the file is damaged or of another format", name
        ) from error
    return net


def layer_message() -> Message:
    """An empty current-form layer, for upgrading an older one."""
    return _CLASSES["Layer"]()


def _parser_message(error: text_format.ParseError) -> str:
    """The parser's message without position, quoted line and internal names."""
    message = re.sub(r"^\d+:\d+ : ", "", str(error).partition("\n")[0])
    quoted = re.sub(r"^'.*': ", "", message)
    return quoted.replace(f"{_PACKAGE}.", "")[:200]


def _refuse_deep(text: str, name: str) -> None:
    """The recursive parser could exhaust Python's stack, so deep nesting is refused first."""
    depth = 0
    for token in _NESTING.finditer(text):
        depth += {"{": 1, "<": 1, "}": -1, ">": -1}.get(token.group(), 0)
        if depth > MAX_DEPTH:
            line = text.count("\n", 0, token.start()) + 1
            raise GraphError(f"braces are nested deeper than {MAX_DEPTH}", Place(name, line, 1))


def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name="npumake/caffe.proto", package=_PACKAGE, syntax="proto2")
    for name, members in ENUMS.items():
        # In a message of its own: two enums of one package may not share a name like MAX.
        enum = file.message_type.add(name=name).enum_type.add(name="Value")
        for number, member in enumerate(members.split()):
            enum.value.add(name=member, number=number)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(" ".join(fields.split()).split(", "), 1):
            _add_field(message, field, number)
    pool = DescriptorPool()
    pool.Add(file)
    descriptors = {name: pool.FindMessageTypeByName(f"{_PACKAGE}.{name}") for name in MESSAGES}
    return {name: GetMessageClass(descriptor) for name, descriptor in descriptors.items()}


def _add_field(message: Message, text: str, counted: int) -> None:
    match = _FIELD.fullmatch(text.strip())
    assert match, text
    kind, many, name, number, default = match.groups()
    field = message.field.add(name=name, number=int(number or counted))
    field.label = field.LABEL_REPEATED if many else field.LABEL_OPTIONAL
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = field.TYPE_ENUM if kind in ENUMS else field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}" + (".Value" if kind in ENUMS else "")
    if default:
        field.default_value = default


_CLASSES = _classes()
