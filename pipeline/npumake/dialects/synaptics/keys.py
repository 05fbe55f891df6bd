"""The keys of SyNAP's metafile with types and defaults, and those without effect here.

Source: the SyNAP guide, "Conversion Metafile", and the toolkit's parser for keys that it omits.
`dialect.py` reads every key, or IGNORED gives the reason why not. A key without a value counts as
absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from npumake.digest import Json
from npumake.project.doc import Doc

# --target → our chip; the last four are older names.
TARGETS = {
    "GENERIC": "synap-generic",
    "DVF120": "dvf120",
    "VS640": "vs640",
    "VS680": "vs680",
    "SL1620": "sl1620",
    "SL1640": "sl1640",
    "SL1680": "sl1680",
    "VS640A0": "vs640",
    "PLATYPUS": "vs640",
    "VS680A0": "vs680",
    "DOLPHIN": "vs680",
}
# chip → the units that can run a layer, the default first
DELEGATES = {
    "synap-generic": ("cpu",),
    "dvf120": ("cpu", "gpu"),
    "sl1620": ("cpu", "gpu"),
    **{chip: ("npu", "gpu", "cpu") for chip in ("vs640", "vs680", "sl1640", "sl1680")},
}

CHANNELS_LAST = (".tflite", ".pb")  # model formats whose layout is NHWC; all others are NCHW
TYPES = ("uint8", "int8", "int16", "float16")
# scheme → its types
SCHEMES = {
    "asymmetric_affine": ("uint8", "int8"),
    "dynamic_fixed_point": ("int8", "int16"),
    "perchannel_symmetric_affine": ("int8",),
}
SCHEME_OF = {  # type → its default scheme
    "uint8": "asymmetric_affine",
    "int8": "dynamic_fixed_point",
    "int16": "dynamic_fixed_point",
}
# algorithm → our method. `standard` takes the minimum and maximum of each tensor. `auto` is
# undocumented; it selects the best of the other three by the outputs.
METHODS = {
    "standard": "max",
    "kl_divergence": "kl",
    "moving_average": "moving_average",
    "auto": "modelwise",
}
AUTO: dict[str, Json] = {
    "methods": ["max", "kl", "moving_average"],
    "percentiles": [1.0],
    "per_channel": [False],
    "asymmetric": [],
    "similarity": 2.0,
}
SECRETS = ("encryption_key", "signature_key", "model_certificate", "vendor_certificate")


@dataclass(frozen=True)
class MetafilePreprocess:
    type: Literal[
        "",
        "none",
        "yuv444",
        "yuv420",
        "nv12",
        "nv21",
        "gray",
        "rgb",
        "bgra",
        "rgb888p",
        "rgb888p3",
        "float32",
    ]
    size: Annotated[tuple[int, ...] | None, Doc("[height, width]", 1)] = None
    crop: bool = False


@dataclass(frozen=True)
class InputEntry:
    name: str | None = None
    shape: Annotated[tuple[int, ...] | None, Doc("Shape in the model.", 1)] = None
    means: float | tuple[float, ...] | None = None
    scale: float | None = None
    format: str | None = None
    security: Literal["any", "secure", "non-secure"] = "any"
    custom: Any = None
    preprocess: MetafilePreprocess | None = None

    @property
    def has_preprocess(self) -> bool:
        return self.preprocess is not None and self.preprocess.type not in ("", "none")


@dataclass(frozen=True)
class OutputEntry:
    name: str | None = None
    shape: Annotated[tuple[int, ...] | None, Doc("Shape in the model.", 1)] = None
    dequantize: bool = False
    format: str | None = None
    security: Literal["secure-if-input-secure", "any"] = "secure-if-input-secure"
    custom: Any = None


@dataclass(frozen=True)
class MetafileQuantization:
    data_type: str | Mapping[str, str] | None = None
    scheme: Literal[
        "default", "asymmetric_affine", "dynamic_fixed_point", "perchannel_symmetric_affine"
    ] = "default"
    mode: Literal["standard", "full"] = "standard"
    algorithm: Literal["standard", "kl_divergence", "moving_average", "auto"] = "standard"
    options: Any = None
    dataset: str | tuple[str, ...] | None = None


@dataclass(frozen=True)
class MetafileSecurity:
    secure: bool = False
    file: str | None = None
    encryption_key: str | None = None
    signature_key: str | None = None
    model_certificate: str | None = None
    vendor_certificate: str | None = None


@dataclass(frozen=True)
class Metafile:
    delegate: str | Mapping[str, str] = "default"
    data_layout: str = "default"
    input_format: str = ""
    output_format: str = ""
    denormalize_outputs: bool = False
    dequantize_outputs: bool = False
    optimize: bool = True
    security: MetafileSecurity | None = None
    inputs: tuple[InputEntry | None, ...] = ()
    outputs: tuple[OutputEntry | None, ...] = ()
    quantization: MetafileQuantization | None = None
    custom: Any = None


_SECURE = "a build has no secrets: `npumake secure --security FILE` encrypts and signs a .hybrid"
_CUSTOM = "it holds data for the user's own tools"
_REAL = "a .hybrid always outputs real numbers"
_POSTPROCESSOR = (
    "the postprocessor on the board reads it; `npumake synap convert` writes it to model_info.txt"
)

# key → why it has no effect here
IGNORED: dict[str, str] = {
    "output_format": _POSTPROCESSOR,
    "denormalize_outputs": _REAL,
    "dequantize_outputs": _REAL,
    "optimize": "it limits the memory traffic of the vendor's compiler",
    **{f"security.{key}": _SECURE for key in ("secure", "file", *SECRETS)},
    "inputs.custom": _CUSTOM,
    "outputs.shape": "shapes are inferred",
    "outputs.dequantize": _REAL,
    "outputs.format": _POSTPROCESSOR,
    "outputs.custom": _CUSTOM,
    "quantization.options": "they are arguments of the vendor's quantizer",
    "custom": _CUSTOM,
}

# The values of ignored keys that match our behavior, and so need no note; others match if empty.
DEFAULT_VALUES: dict[str, Json] = {
    "denormalize_outputs": True,
    "dequantize_outputs": True,
    "optimize": True,
    "outputs.dequantize": True,
}
