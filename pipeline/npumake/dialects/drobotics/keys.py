"""The keys of hb_mapper's YAML. Source: the D-Robotics PTQ guide, tables of the five groups.

`dialect.py` reads every key, or IGNORED gives the reason why not.
"""

from __future__ import annotations

from npumake.dialects.openexplorer.translation import ONE_METHOD
from npumake.dialects.vendor_yaml import VendorKey

# The required groups; the keys of the other groups have defaults.
GROUPS = ("model_parameters", "input_parameters")

# march → our target
MARCHES = {"bernoulli2": "rdk-x3", "bayes-e": "rdk-x5", "bayes": "rdk-ultra"}

# input_type_train → the values of input_type_rt that go with it
LEGAL = {
    "yuv444": ("nv12", "yuv444"),
    "rgb": ("nv12", "yuv444", "rgb", "bgr"),
    "bgr": ("nv12", "yuv444", "rgb", "bgr"),
    "gray": ("gray",),
    "featuremap": ("featuremap",),
}

# norm_type → (whether it subtracts a mean, whether it multiplies by a scale)
NORMS = {
    "no_preprocess": (False, False),
    "data_mean": (True, False),
    "data_scale": (False, True),
    "data_mean_and_scale": (True, True),
}

REMOVABLE = ("Quantize", "Transpose", "Dequantize", "Cast", "Reshape", "Softmax")

_FLAG = VendorKey(holds=bool, default=False)
_LIST = VendorKey(many=True)
_NUMBERS = VendorKey(many=True, divider=" ")
_SHAPES = VendorKey(many=True, divider="x")
_LAYOUTS = ("NCHW", "NHWC")

KEYS: dict[str, VendorKey] = {
    "model_parameters.prototxt": VendorKey(),
    "model_parameters.caffe_model": VendorKey(),
    "model_parameters.onnx_model": VendorKey(),
    "model_parameters.march": VendorKey(tuple(MARCHES), needed=True),
    "model_parameters.output_model_file_prefix": VendorKey(default="model"),
    "model_parameters.working_dir": VendorKey(default="model_output"),
    "model_parameters.layer_out_dump": _FLAG,
    "model_parameters.output_nodes": _LIST,
    "model_parameters.remove_node_type": VendorKey(REMOVABLE, many=True),
    "model_parameters.remove_node_name": _LIST,
    "model_parameters.set_node_data_type": _LIST,
    "model_parameters.debug_mode": VendorKey(("dump_calibration_data",)),
    "model_parameters.node_info": VendorKey(holds=dict),
    "model_parameters.log_level": VendorKey(),
    "input_parameters.input_name": _LIST,
    "input_parameters.input_type_train": VendorKey(tuple(LEGAL), many=True, needed=True),
    "input_parameters.input_layout_train": VendorKey(_LAYOUTS, many=True, needed=True),
    "input_parameters.input_type_rt": VendorKey(
        ("rgb", "bgr", "yuv444", "nv12", "gray", "featuremap"), many=True, needed=True
    ),
    "input_parameters.input_layout_rt": VendorKey(_LAYOUTS, many=True),
    "input_parameters.input_space_and_range": VendorKey(
        ("regular", "bt601_video"), many=True, default="regular"
    ),
    "input_parameters.input_shape": _SHAPES,
    "input_parameters.input_batch": VendorKey(holds=int, default=1),
    "input_parameters.norm_type": VendorKey(tuple(NORMS), many=True),
    "input_parameters.mean_value": _NUMBERS,
    "input_parameters.scale_value": _NUMBERS,
    "calibration_parameters.cal_data_dir": _LIST,
    "calibration_parameters.cal_data_type": VendorKey(("float32", "uint8"), many=True),
    "calibration_parameters.preprocess_on": _FLAG,
    "calibration_parameters.calibration_type": VendorKey(
        ("default", "mix", "kl", "max", "load", "skip"), default="default"
    ),
    "calibration_parameters.max_percentile": VendorKey(holds=float, default=1.0),
    "calibration_parameters.per_channel": _FLAG,
    "calibration_parameters.run_on_cpu": _LIST,
    "calibration_parameters.run_on_bpu": _LIST,
    "calibration_parameters.optimization": VendorKey(holds=list),
    "compiler_parameters.compile_mode": VendorKey(
        ("latency", "bandwidth", "balance"), default="latency"
    ),
    "compiler_parameters.debug": _FLAG,
    "compiler_parameters.core_num": VendorKey(("1", "2"), holds=int, default=1),
    "compiler_parameters.optimize_level": VendorKey(("O0", "O1", "O2", "O3"), default="O3"),
    "compiler_parameters.input_source": VendorKey(holds=dict),
    "compiler_parameters.max_time_per_fc": VendorKey(holds=int, default=0),
    "compiler_parameters.jobs": VendorKey(holds=int),
    "compiler_parameters.advice": VendorKey(holds=float),
    # Keys of later releases; the guide does not list them.
    "compiler_parameters.balance_factor": VendorKey(holds=int),
    "compiler_parameters.ability_entry": VendorKey(),
    "compiler_parameters.extra_params": VendorKey(holds=dict),
    "compiler_parameters.cache_mode": VendorKey(
        ("disable", "enable", "force_overwrite"), default="disable"
    ),
    "compiler_parameters.cache_path": VendorKey(),
    "custom_op.custom_op_method": VendorKey(("register",)),
    "custom_op.op_register_files": _LIST,
    "custom_op.custom_op_dir": VendorKey(),
}

_COMPILER = "it is an option of the vendor's compiler, which writes the .bin"

IGNORED: dict[str, str] = {
    "model_parameters.working_dir": "a project keeps its artifacts in out/; "
    "`npumake hb_mapper makertbin` copies them to the folder",
    "model_parameters.layer_out_dump": "it adds outputs to the .bin; "
    "the comparison shows every tensor anyway",
    "model_parameters.debug_mode": "a build keeps the samples in out/samples.npz; "
    "`npumake hb_mapper makertbin` writes calibration_data",
    "model_parameters.log_level": "deprecated; it has no effect",
    "custom_op.custom_op_method": ONE_METHOD,
    "compiler_parameters.advice": _COMPILER,
    "compiler_parameters.balance_factor": _COMPILER,
    "compiler_parameters.ability_entry": _COMPILER,
    "compiler_parameters.extra_params": _COMPILER,
    "compiler_parameters.cache_mode": _COMPILER,
    "compiler_parameters.cache_path": _COMPILER,
}
