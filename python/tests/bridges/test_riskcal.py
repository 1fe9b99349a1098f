"""riskcal: functions of the same names and arguments, beside riskcal's own."""

from __future__ import annotations

import inspect
import warnings

import numpy
import pytest

theirs = pytest.importorskip("riskcal.calibration.dpsgd")

from dosimeter import risk as ours  # noqa: E402

pytestmark = pytest.mark.bridge

RUNS = [(1.0, 0.01, 300), (2.0, 0.1, 50)]

# riskcal works on a grid of losses with this step, whose connected dots err by less than a step.
GRID = 1e-4


def test_names_and_arguments_are_theirs() -> None:
    for name in ours.__all__:
        if hasattr(theirs, name):
            mine = list(inspect.signature(getattr(ours, name)).parameters.values())
            same = [one.name for one in mine if one.kind is one.POSITIONAL_OR_KEYWORD]
            other = list(inspect.signature(getattr(theirs, name)).parameters)
            assert other[: len(same)] == same, name
    assert sum(hasattr(theirs, name) for name in ours.__all__) >= 4


@pytest.mark.parametrize("run", RUNS)
def test_risks_agree_to_their_grid(run: tuple[float, float, int]) -> None:
    advantage = ours.get_advantage_for_dpsgd(*run)
    assert advantage == pytest.approx(theirs.get_advantage_for_dpsgd(*run), abs=GRID)
    alphas = numpy.array([0.001, 0.01, 0.1, 0.5, 0.9])
    betas = ours.get_beta_for_dpsgd(*run, alphas)
    assert betas == pytest.approx(theirs.get_beta_for_dpsgd(*run, alphas), abs=GRID)


def test_calibrated_noise_agrees_to_their_tolerance() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        # A coarser grid: theirs takes minutes on the usual one.
        noise = theirs.find_noise_multiplier_for_advantage(0.2, 0.1, 50, grid_step=1e-3)
    # Theirs stops within 1e-3 of the target, on either side.
    assert abs(ours.get_advantage_for_dpsgd(noise, 0.1, 50) - 0.2) < 2e-3
    mine = ours.find_noise_multiplier_for_advantage(0.2, 0.1, 50)
    assert mine == pytest.approx(noise, rel=2e-2)
