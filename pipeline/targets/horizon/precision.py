"""quant_config: precision by model, operator, subgraph and node, the later the stronger.

    model_config < op_config < subgraph_config < node_config

Today every node is int8 by one method for the whole model, so that is what may be asked for: the
method of model_config.activation, which beats calibration_type, and int8 on any level.
"""

from __future__ import annotations

from pipeline.digest import Json
from pipeline.errors import ProjectError, did_you_mean
from pipeline.project.document import Route
from pipeline.targets.translation import Native
from pipeline.targets.vendor import Vendor

KEY = "calibration_parameters.quant_config"
_TOP: Route = ("calibration_parameters", "quant_config")
_LEVELS = ("model_config", "op_config", "subgraph_config", "node_config")
_PLAIN = ("inputs", "outputs")  # of a subgraph: names of tensors, no precision

# key of model_config.activation → the values that change nothing
_DEFAULTS: dict[str, tuple[Json, ...]] = {
    "num_bin": (1024,),
    "max_num_bin": (16384,),
    "per_channel": (False,),
    "asymmetric": (False,),
}
_METHODS = {"kl": "kl", "max": "max"}


def put_precision(vendor: Vendor, native: Native) -> None:
    """`calibration:` as quant_config has it. Raises ProjectError for what is not there yet."""
    config = vendor.given(KEY)
    if config is None:
        return
    if not isinstance(config, dict):
        hint = "write its content here"
        raise vendor.error(KEY, "`quant_config` in a file of its own is not read yet", hint)
    for level in config:
        if level not in _LEVELS:
            hint = did_you_mean(level, _LEVELS)
            raise _wrong(vendor, (*_TOP, level), f"unknown level `{level}`", hint)
    for level in _LEVELS[:0:-1]:  # the strongest first: it is the one that counts
        _refuse_wide(vendor, config.get(level), (*_TOP, level))
    _put_model_level(vendor, native, config.get("model_config"))


def _put_model_level(vendor: Vendor, native: Native, level: Json) -> None:
    route: Route = (*_TOP, "model_config")
    if isinstance(level, dict) and list(level) == ["default"]:
        level, route = level["default"], (*route, "default")
    for key, value in _mapping(vendor, level, route).items():
        at = (*route, key)
        if key == "activation":
            _put_activation(vendor, native, _mapping(vendor, value, at), at)
        elif key not in ("all_node_type", "model_output_type"):
            raise _wrong(vendor, at, f"`{key}` is not there yet", "leave it out")
        elif value != {"all_node_type": "int8", "model_output_type": "float32"}[key]:
            raise _wrong(vendor, at, f"`{key}: {value}` is not there yet: nodes are int8")


def _put_activation(vendor: Vendor, native: Native, asked: dict[str, Json], route: Route) -> None:
    for key, value in asked.items():
        at = (*route, key)
        if isinstance(value, list):
            raise _wrong(vendor, at, "a search over several values is not there yet", "give one")
        known = key in ("calibration_type", "max_percentile") or value in _DEFAULTS.get(key, ())
        if not known:
            raise _wrong(vendor, at, f"`{key}: {value}` is not there yet", "leave it out")
    if "calibration_type" not in asked:
        return
    kind, share = asked["calibration_type"], asked.get("max_percentile", 1.0)
    at = (*route, "calibration_type")
    if kind not in _METHODS:
        raise _wrong(vendor, at, f"`{kind}` is not there yet", "there are: kl, max")
    spot = vendor.document.places[at]
    is_cut = kind == "max" and share != 1.0
    native.data["calibration"] = {}
    method = "max_percentile" if is_cut else _METHODS[kind]
    native.put(("calibration", "method"), method, spot)
    if is_cut:
        spot = vendor.document.places[*route, "max_percentile"]
        native.put(("calibration", "percentile"), share, spot)


def _refuse_wide(vendor: Vendor, level: Json, route: Route) -> None:
    """Whatever is named below must be int8."""
    for name, asked in _mapping(vendor, level, route).items():
        at = (*route, name)
        for key, kind in _mapping(vendor, asked, at).items():
            if key not in _PLAIN and kind != "int8":
                what = f"`{key}: {kind}` for `{name}` is not there yet: nodes are int8"
                raise _wrong(vendor, (*at, key), what, "leave it out")


def _mapping(vendor: Vendor, value: Json, route: Route) -> dict[str, Json]:
    if value is not None and not isinstance(value, dict):
        raise _wrong(vendor, route, f"`{route[-1]}` must be a mapping")
    return value or {}


def _wrong(vendor: Vendor, route: Route, what: str, hint: str = "") -> ProjectError:
    return ProjectError(what, vendor.document.places[route].key, hint)
