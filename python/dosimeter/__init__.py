"""Dosimeter measures what a DP-SGD training run really leaks.

A :class:`Run` is looked at through lenses; each lens makes :class:`Claim` s with certified ends
and a standing: proven, heuristic, estimate or measured.

>>> import dosimeter
>>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
>>> for claim in dosimeter.account(run, delta=1e-5).select(quantity="epsilon")[:3]:
...     print(claim)
epsilon @ delta 1e-5 <= 1.829 (proven, composition)
epsilon @ delta 1e-5 <= 1.278 (heuristic, last-iterate)
epsilon @ delta 1e-5 <= 1.278 (heuristic, last-iterate-max)

Everything is computed by the same core as the command ``dosimeter``, to the bit. Bridges to
other tools are modules of their own: :mod:`dosimeter.opacus`, :mod:`dosimeter.dp_accounting`,
:mod:`dosimeter.jax_privacy`, :mod:`dosimeter.risk`, :mod:`dosimeter.ray`,
:mod:`dosimeter.mlflow`. Trainings of your own are audited by :func:`experiment`,
:mod:`dosimeter.torch` and :mod:`dosimeter.jax`.
"""

from __future__ import annotations

from ._core import VERSION as __version__
from .auditing import Audit, Bound, Measured, Verdict, audit, plan
from .calibration import Advice, AdviceRow, Calibration, advise, calibrate
from .checking import Check, Limit, Reading, Translated, Translation, check, prove, translate
from .claims import Account, At, Claim, Sign, Unsupportedness, account
from .comparison import Comparison, compare
from .curves import Curve, Line, profile, steps, tradeoff
from .errors import (
    DosimeterError,
    DosimeterWarning,
    Incomplete,
    InvalidInput,
    NotCertified,
    Unsupported,
)
from .experiment import Experiment, experiment
from .figures import Figure, figure
from .games import Attack, attack, status
from .membership import Membership, lira, rmia
from .reporting import Report, report
from .runs import FurtherRelease, Matrix, Phase, Run
from .sequential import SequentialAudit, sequential
from .training import Training, memorize, train, tune

__all__ = [
    "Account",
    "Advice",
    "AdviceRow",
    "At",
    "Attack",
    "Audit",
    "Bound",
    "Calibration",
    "Check",
    "Claim",
    "Comparison",
    "Curve",
    "DosimeterError",
    "DosimeterWarning",
    "Experiment",
    "Figure",
    "FurtherRelease",
    "Incomplete",
    "InvalidInput",
    "Limit",
    "Line",
    "Matrix",
    "Measured",
    "Membership",
    "NotCertified",
    "Phase",
    "Reading",
    "Report",
    "Run",
    "SequentialAudit",
    "Sign",
    "Training",
    "Translated",
    "Translation",
    "Unsupported",
    "Unsupportedness",
    "Verdict",
    "__version__",
    "account",
    "advise",
    "attack",
    "audit",
    "calibrate",
    "check",
    "compare",
    "experiment",
    "figure",
    "lira",
    "memorize",
    "plan",
    "profile",
    "prove",
    "report",
    "rmia",
    "sequential",
    "status",
    "steps",
    "tradeoff",
    "train",
    "translate",
    "tune",
]
