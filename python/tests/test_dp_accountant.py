"""Our accountant against the abstract test suite of dp_accounting, and against its accountants."""

from __future__ import annotations

import math
from typing import Any

import pytest

theirs = pytest.importorskip("dp_accounting")
suite = pytest.importorskip("dp_accounting.privacy_accountant_test")
from dosimeter.dp_accounting import Accountant  # noqa: E402

RELATIONS = list(theirs.NeighboringRelation)
GAUSSIAN = theirs.GaussianDpEvent


class TestTheirSuite(suite.PrivacyAccountantTest):  # type: ignore[misc]
    """Unsupported events, nothing, no-ops and what is not private, for every relation."""

    def _make_test_accountants(self) -> list[Accountant]:
        return [Accountant(), *(Accountant(relation) for relation in RELATIONS)]


def poisson(rate: float, noise: float) -> Any:
    return theirs.PoissonSampledDpEvent(rate, GAUSSIAN(noise))


def fixed(noise: float) -> Any:
    return theirs.SampledWithoutReplacementDpEvent(1000, 50, GAUSSIAN(noise))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("event", [GAUSSIAN(3.0), poisson(0.02, 1.5), fixed(4.0)])
def test_compositions_are_one(relation: Any, event: Any) -> None:
    """Ten at once, one after the other, nested or in a list: the same number."""
    at_once = Accountant(relation).compose(event, 60)
    nested = theirs.SelfComposedDpEvent(theirs.ComposedDpEvent([event, event]), 6)
    others = [
        Accountant(relation).compose(theirs.SelfComposedDpEvent(event, 20), 3),
        Accountant(relation).compose(nested, 5),
        Accountant(relation).compose(event, 59).compose(theirs.NoOpDpEvent()).compose(event),
    ]
    told = at_once.get_epsilon(1e-5), at_once.get_delta(1.0)
    assert all((one.get_epsilon(1e-5), one.get_delta(1.0)) == told for one in others)
    assert 0.0 < told[0] < 50.0 and 0.0 < told[1] < 1.0
    assert at_once.ledger == theirs.SelfComposedDpEvent(event, 60)
    # More of the same never costs less, and epsilon and delta belong together.
    assert at_once.get_delta(told[0]) <= 1e-5 * (1 + 1e-9)
    assert at_once.compose(event, 60).get_epsilon(1e-5) > told[0]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("event", [GAUSSIAN(30.0), poisson(0.02, 2.0)])
def test_theirs_and_ours_agree(relation: Any, event: Any) -> None:
    pld = theirs.pld.PLDAccountant(relation).compose(event, 100)
    ours = Accountant(relation).compose(event, 100)
    assert ours.get_epsilon(1e-5) == pytest.approx(pld.get_epsilon(1e-5), rel=2e-3)
    assert ours.get_epsilon(1e-5) <= pld.get_epsilon(1e-5)
    assert ours.get_delta(1.0) == pytest.approx(pld.get_delta(1.0), rel=2e-2)


def test_ends() -> None:
    accountant = Accountant().compose(poisson(0.01, 1.0), 10)
    assert accountant.get_epsilon(0) == math.inf and accountant.get_epsilon(1) == 0
    assert accountant.get_delta(math.inf) == 0
    assert Accountant().compose(GAUSSIAN(0.0)).get_epsilon(0.5) == math.inf
    assert Accountant().compose(poisson(0.0, 1.0)).get_epsilon(1e-9) == 0


def test_what_cannot_be_composed_changes_nothing() -> None:
    accountant = Accountant().compose(poisson(0.01, 1.0), 10)
    before = accountant.get_epsilon(1e-5)
    assert not accountant.supports(fixed(1.0))
    with pytest.raises(theirs.UnsupportedEventError, match="fixed-size and poisson"):
        accountant.compose(fixed(1.0))
    with pytest.raises(theirs.UnsupportedEventError, match="LaplaceDpEvent"):
        accountant.compose(theirs.PoissonSampledDpEvent(0.1, theirs.LaplaceDpEvent(1.0)))
    assert accountant.get_epsilon(1e-5) == before
    assert accountant.compose(GAUSSIAN(5.0)).get_epsilon(1e-5) > before
