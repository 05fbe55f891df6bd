"""Earlier builds by the records of a store: whose they were, and what was other then."""

from __future__ import annotations

from typing import Any

from npumake.make.history import History, StoredResult, TargetBuild, changes, owner_of, settings_of

CHIP: dict[str, Any] = {"name": "chip"}


def result(
    stage: str,
    artifact: str,
    inputs: dict[str, str],
    time_ns: int = 0,
    target: dict[str, Any] | None = CHIP,
    **rest: Any,
) -> StoredResult:
    document = {"stage": stage, "inputs": inputs, "target": target, **rest}
    return StoredResult(f"{stage} {artifact}", document, artifact, 7, time_ns)


def store_of(model: str, method: str, time_ns: int) -> list[StoredResult]:
    """The records of one build."""
    name = f"{model} {method}"
    files = {"model.path": {"model.onnx": model}}
    params = {"calibration": {"method": method}}
    return [
        result("original_float", model, {}, time_ns, None, sources=files),
        result("quantized", f"q {name}", {"original_float": model}, time_ns, params=params),
        result("compiled", f"c {name}", {"quantized": f"q {name}"}, time_ns),
        result("compiled_check", f"k {name}", {"compiled": f"c {name}"}, time_ns),
        result("comparison", f"d {name}", {"quantized": f"q {name}"}, time_ns),
    ]


def today(name: str, model: str, method: str, target: str = "chip") -> TargetBuild:
    settings = {"calibration.method": method, "files model.path model.onnx": model}
    return TargetBuild(name, target, None, settings)


HISTORY = History([*store_of("a", "max", 1), *store_of("a", "kl", 2), *store_of("b", "max", 3)])


def test_a_build_is_its_comparison_with_all_results_of_its_quantized_model() -> None:
    first, second, third = HISTORY.builds
    assert [build.time_ns for build in (first, second, third)] == [1, 2, 3]
    artifacts = {stage: each.digest for stage, each in first.results.items()}
    assert artifacts == {
        "comparison": "d a max",
        "compiled": "c a max",
        "compiled_check": "k a max",
    }
    assert first.settings == {"calibration.method": "max", "files model.path model.onnx": "a"}


def test_an_earlier_build_belongs_to_the_one_it_differs_least_from() -> None:
    builds = [today("p", "a", "max"), today("p@kl", "a", "kl"), today("p", "a", "kl", "other")]
    assert [owner_of(past, builds) for past in HISTORY.builds] == [0, 1, None]


def test_a_build_that_shares_no_file_is_nobodys() -> None:
    assert owner_of(HISTORY.builds[2], [today("p", "a", "max")]) is None


def test_the_key_of_today_decides_before_any_likeness() -> None:
    past = HISTORY.builds[0]
    builds = [today("p", "a", "max"), TargetBuild("q", "chip", past.key, {})]
    assert owner_of(past, builds) == 1


def test_settings_are_told_first_then_files_then_tools() -> None:
    document = {
        "params": {"inputs": {"x": {"mean": 0}}, "data": {}},
        "sources": {"data.x.files": {"a.jpg": "1", "b.jpg": "2"}},
        "tools": {"numpy": "1"},
    }
    past = settings_of([document])
    document["sources"] = {"data.x.files": {"a.jpg": "3", "c.jpg": "4"}}
    document["params"] = {"inputs": {"x": {"mean": 1}}, "data": {}, "gates": None}
    document["tools"] = {"numpy": "2"}
    assert changes(past, settings_of([document])) == (
        "gates: not set",
        "inputs.x.mean: 0",
        "data.x.files a.jpg: other",
        "data.x.files b.jpg: no longer used",
        "data.x.files c.jpg: not used yet",
        "tool numpy: 1",
    )


def test_a_store_without_the_first_records_still_has_the_last() -> None:
    (build,) = History(
        [each for each in store_of("a", "max", 1) if each.stage != "quantized"]
    ).builds
    assert build.results.keys() == {"comparison", "compiled", "compiled_check"}
    assert build.settings == {}
