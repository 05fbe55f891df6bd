"""Hints: what a name that nobody knows may have meant."""

from __future__ import annotations

from npumake.errors import MAX_NAMES, did_you_mean


def test_of_many_names_those_most_alike_are_told_and_the_others_counted():
    names = [f"net{number}:rdk-x5/calibrated" for number in range(500)]
    hint = did_you_mean("abcdef", [*names, "a1b2c3d4e5f6g7h8i9"])
    told = hint.removeprefix("known: ").removesuffix(f" and {501 - MAX_NAMES} more").split(", ")
    assert len(told) == MAX_NAMES
    assert "a1b2c3d4e5f6g7h8i9" in told


def test_of_few_names_all_are_told():
    assert did_you_mean("zzz", ["b", "a"]) == "known: a, b"
