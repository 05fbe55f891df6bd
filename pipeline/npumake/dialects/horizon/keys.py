"""The keys of hb_compile's YAML. Source: the OpenExplorer 3.x tables of the five groups.

`dialect.py` reads every key, or IGNORED gives the reason why not.
"""

from __future__ import annotations

from npumake.dialects.openexplorer.translation import ONE_METHOD
from npumake.dialects.vendor_yaml import VendorKey

# The groups that accept unknown keys; all others refuse them.
OPEN_GROUPS = ("calibration_parameters",)

# march without public figures → the chip whose figures are used for it
PLANNED_AS = {
    "nash": "nash-e",
    "nash-b-lite": "nash-b",
    "nash-b-plus": "nash-b",
    "nash-starry-p": "nash-p",
}
MARCHES = {name: name for name in ("nash-b", "nash-e", "nash-h", "nash-m", "nash-p")} | PLANNED_AS
LARGE_MARCHES = ("nash-h", "nash-p", "nash-starry-p")  # several cores and a shared L2

# input_type_train → the values of input_type_rt that go with it
LEGAL = {
    "rgb": ("rgb", "bgr", "nv12", "yuv444"),
    "bgr": ("bgr", "rgb", "nv12", "yuv444"),
    "yuv444": ("yuv444", "nv12"),
    "gray": ("gray",),
    "featuremap": ("featuremap",),
}
FED_LAYOUTS = {"rgb": "NHWC", "bgr": "NHWC", "yuv444": "NHWC", "gray": "NCHW", "featuremap": "NCHW"}

REMOVABLE = ("Quantize", "Transpose", "Dequantize", "Cast", "Reshape", "Softmax")

_NORMS = (
    *("no_preprocess", "data_mean", "data_scale", "data_std"),
    *("data_mean_and_scale", "data_mean_and_std"),
)
_FLAG = VendorKey(holds=bool, default=False)
_ON = VendorKey(holds=bool, default=True)
_UNIT = VendorKey(holds=bool, default=True, documented=("boolean",))
_LIST = VendorKey(many=True)
_NUMBERS = VendorKey(many=True, divider=" ")
_SHAPES = VendorKey(many=True, divider="x")

KEYS: dict[str, VendorKey] = {
    "model_parameters.onnx_model": VendorKey(),
    "model_parameters.caffe_model": VendorKey(),
    "model_parameters.prototxt": VendorKey(),
    "model_parameters.march": VendorKey(tuple(MARCHES), needed=True),
    "model_parameters.working_dir": VendorKey(default="./model_output"),
    "model_parameters.output_model_file_prefix": VendorKey(default="model"),
    "model_parameters.layer_out_dump": _FLAG,
    "model_parameters.output_nodes": _LIST,
    "model_parameters.remove_node_type": VendorKey(REMOVABLE, many=True),
    "model_parameters.remove_node_name": _LIST,
    "model_parameters.node_info": VendorKey(holds=dict),
    "model_parameters.debug_mode": VendorKey(("dump_calibration_data",)),
    "model_parameters.enable_vpu": _UNIT,
    "model_parameters.enable_spu": _UNIT,
    "model_parameters.log_level": VendorKey(documented=("integer",)),
    "model_parameters.set_node_data_type": _LIST,
    "input_parameters.input_name": _LIST,
    "input_parameters.input_type_rt": VendorKey(
        ("nv12", "yuv444", "rgb", "bgr", "gray", "featuremap"), many=True, default="featuremap"
    ),
    "input_parameters.input_type_train": VendorKey(tuple(LEGAL), many=True, default="featuremap"),
    "input_parameters.input_layout_train": VendorKey(("NCHW", "NHWC"), many=True),
    "input_parameters.input_layout_rt": VendorKey(("NCHW", "NHWC"), many=True),
    "input_parameters.input_space_and_range": VendorKey(
        ("regular", "bt601_video"), many=True, default="regular"
    ),
    "input_parameters.input_shape": _SHAPES,
    "input_parameters.input_batch": VendorKey(holds=int, default=1, documented=("string",)),
    "input_parameters.separate_batch": _FLAG,
    "input_parameters.separate_name": _LIST,
    "input_parameters.mean_value": _NUMBERS,
    "input_parameters.scale_value": _NUMBERS,
    "input_parameters.std_value": _NUMBERS,
    "input_parameters.norm_type": VendorKey(
        (*_NORMS, "data_mean_and_scale", "data_mean_and_std"), many=True
    ),
    "calibration_parameters.cal_data_dir": _LIST,
    "calibration_parameters.calibration_type": VendorKey(
        ("default", "mix", "kl", "max", "load", "skip"), default="default"
    ),
    "calibration_parameters.per_channel": _FLAG,
    "calibration_parameters.max_percentile": VendorKey(
        holds=float, default=1.0, documented=("number", "null")
    ),
    "calibration_parameters.run_on_cpu": _LIST,
    "calibration_parameters.run_on_bpu": _LIST,
    "calibration_parameters.optimization": VendorKey(holds=list),
    "calibration_parameters.quant_config": VendorKey(
        holds=dict, documented=("string", "object", "null")
    ),
    "calibration_parameters.preprocess_on": _FLAG,
    "calibration_parameters.cal_data_type": VendorKey(("float32", "uint8"), many=True),
    "compiler_parameters.compile_mode": VendorKey(
        ("latency", "bandwidth", "balance"), default="latency"
    ),
    "compiler_parameters.balance_factor": VendorKey(holds=int),
    "compiler_parameters.optimize_level": VendorKey(("O0", "O1", "O2"), default="O2"),
    "compiler_parameters.core_num": VendorKey(holds=int, default=1),
    "compiler_parameters.max_time_per_fc": VendorKey(holds=int, default=0),
    "compiler_parameters.jobs": VendorKey(holds=int, default=16),
    "compiler_parameters.debug": _ON,
    "compiler_parameters.advice": VendorKey(holds=float, default=0.0),
    "compiler_parameters.input_source": VendorKey(holds=dict),
    "compiler_parameters.cache_mode": VendorKey(
        ("disable", "enable", "force_overwrite"), default="disable"
    ),
    "compiler_parameters.cache_path": VendorKey(),
    "compiler_parameters.max_l2m_size": VendorKey(
        holds=int, default=0, documented=("string", "integer", "null")
    ),
    "compiler_parameters.ability_entry": VendorKey(),
    "compiler_parameters.extra_params": VendorKey(holds=dict, documented=("object",)),
    "compiler_parameters.hbdk3_compatible_mode": _FLAG,
    "custom_op.custom_op_method": VendorKey(("register",)),
    "custom_op.op_register_files": _LIST,
    "custom_op.custom_op_dir": VendorKey(),
}

_COMPILER = "it is an option of the vendor's compiler, which writes the .hbm"
_DEPRECATED = "deprecated; it has no effect"

IGNORED: dict[str, str] = {
    "model_parameters.working_dir": "a project keeps its artifacts in out/; "
    "`npumake hb_compile` copies them to the folder",
    "model_parameters.layer_out_dump": "it adds outputs to the .hbm; "
    "the comparison shows every tensor anyway",
    "model_parameters.debug_mode": "a build keeps the samples in out/samples.npz; "
    "`npumake hb_compile` writes calibration_data",
    "model_parameters.enable_vpu": _COMPILER,
    "model_parameters.enable_spu": _COMPILER,
    "model_parameters.log_level": _DEPRECATED,
    "model_parameters.set_node_data_type": _DEPRECATED,
    "input_parameters.input_layout_rt": "deprecated; it follows from input_type_rt",
    "input_parameters.norm_type": "deprecated; it follows from mean_value, scale_value, std_value",
    "input_parameters.separate_batch": _COMPILER,
    "input_parameters.separate_name": _COMPILER,
    "calibration_parameters.preprocess_on": _DEPRECATED,
    "calibration_parameters.cal_data_type": "deprecated; a .npy file contains its type",
    "compiler_parameters.balance_factor": _COMPILER,
    "compiler_parameters.advice": _COMPILER,
    "compiler_parameters.cache_mode": _COMPILER,
    "compiler_parameters.cache_path": _COMPILER,
    "compiler_parameters.max_l2m_size": _COMPILER,
    "compiler_parameters.ability_entry": _COMPILER,
    "compiler_parameters.extra_params": _COMPILER,
    "compiler_parameters.hbdk3_compatible_mode": _DEPRECATED,
    "custom_op.custom_op_method": ONE_METHOD,
}
