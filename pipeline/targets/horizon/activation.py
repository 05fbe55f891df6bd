"""activation of quant_config, and its two searches: how ranges are found.

    calibration_type    beats that of calibration_parameters; a list is a search
    max_percentile      of max: below 1 it is max_percentile
    num_bin             of kl, at most max_num_bin: the next number of bins there is here
    asymmetric          whether zero may be anywhere in a grid
    per_channel         True: every channel of a feature map has the whole grid

A list of several values anywhere is a search: of methods here, whatever the list is of.
"""

from __future__ import annotations

from pipeline.digest import Json
from pipeline.project.vendor import Note
from pipeline.targets.horizon.entry import Entry, quant_config
from pipeline.targets.translation import Native
from pipeline.targets.vendor import Vendor

METHODS = ("kl", "max", "load", "skip", "mix", "default")
BINS = (512, 1024, 2048, 4096, 8192, 16384)
KEYS = (
    *("calibration_type", "max_percentile", "num_bin", "max_num_bin"),
    *("per_channel", "asymmetric"),
)
LEAST = 0.5  # of max_percentile: HMCT raises what is lower
_SEARCH = "a search is over kl, max and max_percentile, whatever it lists"


def put_activation(native: Native, model: Entry) -> None:
    """`calibration:` of model_config; noise stays with `skip`. Raises ProjectError."""
    found = {entry.name: entry for entry in _activation(model)}
    for entry in found.values():
        if entry.name not in KEYS:
            raise entry.strange("key", KEYS)
    _put_method(native, model, found)
    _put_bins(native, found)
    if flag := found.get("asymmetric"):
        flags = _flags(flag)
        if len(flags) == 1:
            native.put(("calibration", "symmetric"), not flags[0], flag.spot)
    flag = found.get("per_channel")
    if flag and _flags(flag) == [True]:
        native.put(("calibration", "per_channel"), True, flag.spot)


def activation_notes(vendor: Vendor) -> tuple[Note, ...]:
    config = quant_config(vendor)
    found = []
    for entry in config.below() if config else ():
        values = entry.value if isinstance(entry.value, list) else [entry.value]
        if entry.name in KEYS and len(values) > 1:
            found.append((_SEARCH, entry))
    return tuple(Note(what, entry.spot.value) for what, entry in found)


def _activation(model: Entry) -> list[Entry]:
    entry = model.at("activation")
    return list(entry.inside()) if entry else []


def _put_method(native: Native, model: Entry, found: dict[str, Entry]) -> None:
    layerwise, modelwise = model.at("layerwise_search"), model.at("modelwise_search")
    for entry in filter(None, (layerwise, modelwise)):
        list(entry.inside())  # a mapping
    several = [entry for entry in found.values() if len(_several(entry)) > 1]
    shares = sorted(_shares(found["max_percentile"])) if "max_percentile" in found else [1.0]
    asked = found.get("calibration_type")
    kinds = _kinds(asked) if asked else ()
    if search := layerwise or modelwise or next(iter(several), None):
        kind, spot = "mix" if layerwise else "default", search.spot
    elif asked:
        kind, spot = kinds[0], asked.spot
    else:
        return
    if native.data["calibration"]["method"] == "skip":
        return
    native.data["calibration"] = {}
    is_cut = shares[0] < 1.0 and kind == "max"
    native.put(("calibration", "method"), "max_percentile" if is_cut else kind, spot)
    if shares[0] < 1.0 and kind in ("max", "default", "mix"):
        native.put(("calibration", "percentile"), shares[0], found["max_percentile"].spot)


def _kinds(entry: Entry) -> tuple[str, ...]:
    kinds = _several(entry)
    if not all(kind in METHODS for kind in kinds):
        raise entry.error(f"`calibration_type` cannot be `{entry.value}`", ", ".join(METHODS))
    return tuple(map(str, kinds))


def _put_bins(native: Native, found: dict[str, Entry]) -> None:
    limits = {"num_bin": 1024, "max_num_bin": BINS[-1]}
    given = {name: found[name] for name in limits if name in found}
    if not given:
        return
    wanted, most = (
        max(_numbers(given[name])) if name in given else limit for name, limit in limits.items()
    )
    bins = next((bins for bins in BINS if bins >= min(wanted, most)), BINS[-1])
    native.put(("calibration", "bins"), bins, next(iter(given.values())).spot)


def _shares(entry: Entry) -> list[float]:
    shares = _numbers(entry)
    if any(share > 1.0 for share in shares):
        raise entry.error(f"`max_percentile` must be {LEAST}..1, not {entry.value}")
    return [max(share, LEAST) for share in shares]


def _numbers(entry: Entry) -> list[float]:
    values = _several(entry)
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise entry.error(f"`{entry.name}` must be a number, or a list of numbers")
    if min(values) < 0:
        raise entry.error(f"`{entry.name}` must be at least 0, not {min(values)}")
    return [float(value) for value in values]


def _flags(entry: Entry) -> list[bool]:
    values = _several(entry)
    if not all(isinstance(value, bool) for value in values):
        raise entry.error(f"`{entry.name}` must be True or False")
    return values


def _several(entry: Entry) -> list[Json]:
    """The values of a search, or the one there is. Raises ProjectError for an empty list."""
    values = entry.value if isinstance(entry.value, list) else [entry.value]
    if not values:
        raise entry.error(f"`{entry.name}` lists nothing")
    return values
