"""Directions of gradient canaries: orthonormal, and the same however they are reached."""

from __future__ import annotations

import numpy
import pytest

import dosimeter
from dosimeter._directions import Directions, hadamard, signs


@pytest.mark.parametrize("kind", ["signs", "blocks", "coordinates"])
@pytest.mark.parametrize(("count", "total"), [(1, 7), (5, 803), (64, 1000)])
def test_directions_are_orthonormal(kind: str, count: int, total: int) -> None:
    directions = Directions(kind, count, total, seed=3)  # type: ignore[arg-type]
    dense = numpy.stack([directions.dense(canary) for canary in range(count)])
    assert numpy.abs(dense @ dense.T - numpy.eye(count)).max() < 1e-12
    other = Directions(kind, count, total, seed=4).dense(0)  # type: ignore[arg-type]
    assert not numpy.array_equal(other, dense[0]) or kind == "coordinates"


def test_signs_are_fair_and_can_be_had_from_anywhere() -> None:
    found = signs(9, 0, 100_000)
    assert set(found) == {-1.0, 1.0} and abs(found.sum()) < 5 * 100_000**0.5
    assert (signs(9, 77, 5000) == found[77:5000]).all()
    # Neighbours, and places a word apart, are independent.
    for lag in (1, 31, 32, 33, 1024):
        assert abs((found[lag:] * found[:-lag]).sum()) < 5 * 100_000**0.5


def test_the_transform_is_its_own_inverse() -> None:
    values = numpy.random.default_rng(0).normal(size=64)
    assert numpy.allclose(hadamard(hadamard(values)), 64 * values)


def test_too_many_canaries_are_refused() -> None:
    with pytest.raises(dosimeter.InvalidInput, match="parameters"):
        Directions("signs", 9, 15, seed=0)
    with pytest.raises(dosimeter.InvalidInput, match="no directions"):
        Directions("spirals", 1, 15, seed=0)  # type: ignore[arg-type]
