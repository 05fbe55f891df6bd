"""activation of quant_config, and its two searches: how ranges are found.

    calibration_type    beats that of calibration_parameters; a list is a search
    max_percentile      of max: below 1 it is max_percentile
    num_bin             of kl, at most max_num_bin: the next number of bins there is here
    asymmetric          whether zero may be anywhere in a grid
    per_channel         True: every channel of a feature map has the whole grid

A list of several values is a search over the model, and so is `modelwise_search`; without
calibration_type it is that of `default`:

    modelwise_search    {similarity, metric}: where it stops, and what it chooses by
    layerwise_search    a method for each tensor, by the noise it leaves
"""

from __future__ import annotations

from npumake.dialects.horizon.entry import ConfigEntry, quant_config
from npumake.dialects.native import Native
from npumake.dialects.vendor_yaml import VendorYaml
from npumake.digest import Json
from npumake.project.document import RoutePlace
from npumake.project.vendor import Note

METHODS = ("kl", "max", "load", "skip", "mix", "default")
BINS = (512, 1024, 2048, 4096, 8192, 16384)
KEYS = (
    *("calibration_type", "max_percentile", "num_bin", "max_num_bin"),
    *("per_channel", "asymmetric"),
)
LEAST = 0.5  # of max_percentile: HMCT raises what is lower
SEARCHED = ("max", "kl")
METRICS = ("cosine-similarity", "mse", "mae", "mre", "sqnr", "chebyshev")
_LISTS = ("calibration_type", "max_percentile", "per_channel", "asymmetric")
BESIDE = {"modelwise": "default", "max_percentile": "max"}  # our method → their calibration_type
_LARGEST = "of a list the largest is taken"


def put_activation(native: Native, model: ConfigEntry) -> None:
    """`calibration:` of model_config; noise stays with `skip`. Raises ProjectError."""
    found = {entry.name: entry for entry in _activation(model)}
    for entry in found.values():
        if entry.name not in KEYS:
            raise entry.strange("key", KEYS)
    _put_method(native, model, found)
    _put_bins(native, found)
    if native.data["calibration"]["method"] == "modelwise":
        return  # which has lists of them
    if flag := found.get("asymmetric"):
        native.put(("calibration", "symmetric"), not _flags(flag)[0], flag.spot)
    flag = found.get("per_channel")
    if flag and _flags(flag) == [True]:
        native.put(("calibration", "per_channel"), True, flag.spot)


def activation_notes(vendor: VendorYaml) -> tuple[Note, ...]:
    config = quant_config(vendor)
    found = []
    for entry in config.below() if config else ():
        values = entry.value if isinstance(entry.value, list) else [entry.value]
        if entry.name in ("num_bin", "max_num_bin") and len(values) > 1:
            found.append((f"`{entry.name}`: {_LARGEST}", entry))
    return tuple(Note(message, entry.spot.value) for message, entry in found)


def _activation(model: ConfigEntry) -> list[ConfigEntry]:
    entry = model.at("activation")
    return list(entry.inside()) if entry else []


def _put_method(native: Native, model: ConfigEntry, found: dict[str, ConfigEntry]) -> None:
    layerwise, modelwise = model.at("layerwise_search"), model.at("modelwise_search")
    for entry in filter(None, (layerwise, modelwise)):
        list(entry.inside())  # a mapping
    several = [found[name] for name in _LISTS if name in found and len(_several(found[name])) > 1]
    asked, percentile = found.get("calibration_type"), found.get("max_percentile")
    if percentile:
        _shares(percentile)
    outside = native.data["calibration"]["method"]  # what stands beside quant_config
    kinds = _kinds(asked) if asked else (BESIDE.get(outside, outside),)
    said = (layerwise, modelwise, *several, *(found.get(name) for name in _LISTS))
    spot = next((entry.spot for entry in said if entry), None)
    if spot is None or outside == "skip":
        return
    is_search = bool(modelwise or several or kinds == ("default",))
    if layerwise or is_search or asked:
        native.data["calibration"] = {}
    if layerwise:
        native.put(("calibration", "method"), "mix", spot)
    elif is_search:
        _put_search(native, found, modelwise, spot)
    elif asked or percentile:
        _put_single(native, kinds[0], percentile, spot)


def _put_single(
    native: Native, kind: str, percentile: ConfigEntry | None, spot: RoutePlace
) -> None:
    """One method; max below a percentile of 1 is max_percentile."""
    share = _shares(percentile)[0] if percentile else 1.0
    is_cut = kind == "max" and share < 1.0
    native.put(("calibration", "method"), "max_percentile" if is_cut else kind, spot)
    if percentile and is_cut:
        native.put(("calibration", "percentile"), share, percentile.spot)


def _put_search(
    native: Native, found: dict[str, ConfigEntry], modelwise: ConfigEntry | None, spot: RoutePlace
) -> None:
    """What is searched: what is listed; of what is not, as with `default` where no method is said,
    else the tool's own value."""
    native.put(("calibration", "method"), "modelwise", spot)
    asked = found.get("calibration_type")
    kinds = _kinds(asked) if asked else ("default",)
    is_default = "default" in kinds
    if asked and not is_default:
        wrong = [kind for kind in kinds if kind not in SEARCHED]
        if wrong:
            raise asked.error(f"a search has no `{wrong[0]}`", ", ".join(SEARCHED))
        _put_list(native, "methods", list(kinds), asked.spot)
    usual: dict[str, list[Json]] = {"percentiles": [1.0], "per_channel": [False], "asymmetric": []}
    for key, name, values in (
        ("percentiles", "max_percentile", _shares),
        ("per_channel", "per_channel", _flags),
        ("asymmetric", "asymmetric", _flags),
    ):
        if entry := found.get(name):
            _put_list(native, key, values(entry), entry.spot)
        elif not is_default:
            _put_list(native, key, usual[key], spot)
    if modelwise and (similarity := modelwise.at("similarity")):
        _put_list(native, "similarity", _numbers(similarity)[0], similarity.spot)
    if modelwise and (metric := modelwise.at("metric")):
        _put_list(native, "metric", metric.one_of(METRICS), metric.spot)


def _put_list(native: Native, key: str, value: Json, spot: RoutePlace) -> None:
    native.put(("calibration", "modelwise", key), value, spot)


def _kinds(entry: ConfigEntry) -> tuple[str, ...]:
    kinds = _several(entry)
    if not all(kind in METHODS for kind in kinds):
        raise entry.error(f"`calibration_type` cannot be `{entry.value}`", ", ".join(METHODS))
    return tuple(map(str, kinds))


def _put_bins(native: Native, found: dict[str, ConfigEntry]) -> None:
    limits = {"num_bin": 1024, "max_num_bin": BINS[-1]}
    given = {name: found[name] for name in limits if name in found}
    if not given:
        return
    wanted, most = (
        max(_numbers(given[name])) if name in given else limit for name, limit in limits.items()
    )
    bins = next((bins for bins in BINS if bins >= min(wanted, most)), BINS[-1])
    native.put(("calibration", "bins"), bins, next(iter(given.values())).spot)


def _shares(entry: ConfigEntry) -> list[float]:
    shares = _numbers(entry)
    if any(share > 1.0 for share in shares):
        raise entry.error(f"`max_percentile` must be {LEAST}..1, not {entry.value}")
    return [max(share, LEAST) for share in shares]


def _numbers(entry: ConfigEntry) -> list[float]:
    values = _several(entry)
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise entry.error(f"`{entry.name}` must be a number, or a list of numbers")
    if min(values) < 0:
        raise entry.error(f"`{entry.name}` must be at least 0, not {min(values)}")
    return [float(value) for value in values]


def _flags(entry: ConfigEntry) -> list[bool]:
    values = _several(entry)
    if not all(isinstance(value, bool) for value in values):
        raise entry.error(f"`{entry.name}` must be True or False")
    return values


def _several(entry: ConfigEntry) -> list[Json]:
    """The values of a search, or the one there is. Raises ProjectError for an empty list."""
    values = entry.value if isinstance(entry.value, list) else [entry.value]
    if not values:
        raise entry.error(f"`{entry.name}` lists nothing")
    return values
