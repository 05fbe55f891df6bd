"""`activation` of quant_config: the calibration method, and its two searches.

    calibration_type    overrides that of calibration_parameters; a list is a search
    max_percentile      for max: a value below 1 selects our max_percentile
    num_bin             for kl, at most max_num_bin; rounded up to a number of bins in BINS
    asymmetric          whether the zero point may be nonzero
    per_channel         True: each channel of a feature map uses the whole grid

A list with several values is a search over the model, as is `modelwise_search`. Without
calibration_type the search is that of `default`:

    modelwise_search    {similarity, metric}: the stop criterion, and the figure to compare by
    layerwise_search    selects a method per tensor, by its quantization noise
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
LOWEST_MAX_PERCENTILE = 0.5  # HMCT raises a lower max_percentile to this
SEARCHABLE_METHODS = ("max", "kl")
METRICS = ("cosine-similarity", "mse", "mae", "mre", "sqnr", "chebyshev")
_LISTS = ("calibration_type", "max_percentile", "per_channel", "asymmetric")
CALIBRATION_TYPES = {
    "modelwise": "default",
    "max_percentile": "max",
}  # our method → their calibration_type
_LIST_NOTE = "the largest value of a list is used"


def put_activation(native: Native, model: ConfigEntry) -> None:
    """Sets `calibration:` from model_config; `skip` stays as it is. Raises ProjectError."""
    entries = {entry.name: entry for entry in _activation(model)}
    for entry in entries.values():
        if entry.name not in KEYS:
            raise entry.unknown("key", KEYS)
    _put_method(native, model, entries)
    _put_bins(native, entries)
    if native.data["calibration"]["method"] == "modelwise":
        return  # its lists hold both flags
    if flag := entries.get("asymmetric"):
        native.put(("calibration", "symmetric"), not _flags(flag)[0], flag.spot)
    flag = entries.get("per_channel")
    if flag and _flags(flag) == [True]:
        native.put(("calibration", "per_channel"), True, flag.spot)


def activation_notes(vendor: VendorYaml) -> tuple[Note, ...]:
    config = quant_config(vendor)
    notes = []
    for entry in config.descendants() if config else ():
        values = entry.value if isinstance(entry.value, list) else [entry.value]
        if entry.name in ("num_bin", "max_num_bin") and len(values) > 1:
            notes.append((f"`{entry.name}`: {_LIST_NOTE}", entry))
    return tuple(Note(message, entry.spot.value) for message, entry in notes)


def _activation(model: ConfigEntry) -> list[ConfigEntry]:
    entry = model.at("activation")
    return list(entry.children()) if entry else []


def _put_method(native: Native, model: ConfigEntry, entries: dict[str, ConfigEntry]) -> None:
    layerwise, modelwise = model.at("layerwise_search"), model.at("modelwise_search")
    for entry in filter(None, (layerwise, modelwise)):
        list(entry.children())  # a mapping
    lists = [
        entries[name] for name in _LISTS if name in entries and len(_several(entries[name])) > 1
    ]
    calibration_type, percentile = entries.get("calibration_type"), entries.get("max_percentile")
    if percentile:
        _shares(percentile)
    outside = native.data["calibration"]["method"]  # the method outside quant_config
    kinds = (
        _kinds(calibration_type) if calibration_type else (CALIBRATION_TYPES.get(outside, outside),)
    )
    candidates = (layerwise, modelwise, *lists, *(entries.get(name) for name in _LISTS))
    spot = next((entry.spot for entry in candidates if entry), None)
    if spot is None or outside == "skip":
        return
    is_search = bool(modelwise or lists or kinds == ("default",))
    if layerwise or is_search or calibration_type:
        native.data["calibration"] = {}
    if layerwise:
        native.put(("calibration", "method"), "mix", spot)
    elif is_search:
        _put_search(native, entries, modelwise, spot)
    elif calibration_type or percentile:
        _put_single(native, kinds[0], percentile, spot)


def _put_single(
    native: Native, kind: str, percentile: ConfigEntry | None, spot: RoutePlace
) -> None:
    """Sets one method; max with a percentile below 1 becomes max_percentile."""
    share = _shares(percentile)[0] if percentile else 1.0
    is_cut = kind == "max" and share < 1.0
    native.put(("calibration", "method"), "max_percentile" if is_cut else kind, spot)
    if percentile and is_cut:
        native.put(("calibration", "percentile"), share, percentile.spot)


def _put_search(
    native: Native, entries: dict[str, ConfigEntry], modelwise: ConfigEntry | None, spot: RoutePlace
) -> None:
    """Sets the lists of a search. A key without a list takes the candidates of `default` if no
    method is set, else the tool's default value."""
    native.put(("calibration", "method"), "modelwise", spot)
    calibration_type = entries.get("calibration_type")
    kinds = _kinds(calibration_type) if calibration_type else ("default",)
    is_default = "default" in kinds
    if calibration_type and not is_default:
        wrong = [kind for kind in kinds if kind not in SEARCHABLE_METHODS]
        if wrong:
            raise calibration_type.error(
                f"a search has no `{wrong[0]}`", ", ".join(SEARCHABLE_METHODS)
            )
        _put_list(native, "methods", list(kinds), calibration_type.spot)
    defaults: dict[str, list[Json]] = {
        "percentiles": [1.0],
        "per_channel": [False],
        "asymmetric": [],
    }
    for key, name, values in (
        ("percentiles", "max_percentile", _shares),
        ("per_channel", "per_channel", _flags),
        ("asymmetric", "asymmetric", _flags),
    ):
        if entry := entries.get(name):
            _put_list(native, key, values(entry), entry.spot)
        elif not is_default:
            _put_list(native, key, defaults[key], spot)
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


def _put_bins(native: Native, entries: dict[str, ConfigEntry]) -> None:
    limits = {"num_bin": 1024, "max_num_bin": BINS[-1]}
    numbers = {name: entries[name] for name in limits if name in entries}
    if not numbers:
        return
    requested_bins, max_bins = (
        max(_numbers(numbers[name])) if name in numbers else limit for name, limit in limits.items()
    )
    bins = next((bins for bins in BINS if bins >= min(requested_bins, max_bins)), BINS[-1])
    native.put(("calibration", "bins"), bins, next(iter(numbers.values())).spot)


def _shares(entry: ConfigEntry) -> list[float]:
    shares = _numbers(entry)
    if any(share > 1.0 for share in shares):
        raise entry.error(f"`max_percentile` must be {LOWEST_MAX_PERCENTILE}..1, not {entry.value}")
    return [max(share, LOWEST_MAX_PERCENTILE) for share in shares]


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
    """The values of a list, or the single value. Raises ProjectError for an empty list."""
    values = entry.value if isinstance(entry.value, list) else [entry.value]
    if not values:
        raise entry.error(f"`{entry.name}` lists nothing")
    return values
