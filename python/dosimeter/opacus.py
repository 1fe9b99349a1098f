"""Opacus: an accountant in place of its own, canaries, and what the training really sampled
(extra ``dosimeter[opacus]``).

Importing this module registers the accountant::

    import dosimeter.opacus
    from opacus import PrivacyEngine

    engine = PrivacyEngine(accountant="dosimeter")
    ...
    engine.get_epsilon(delta=1e-5)              # certified, from above
    engine.accountant.account(delta=1e-5)       # every lens

and :class:`Canaries` with :class:`Recorder` audit the same training in one run.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from opacus.accountants import IAccountant, register_accountant

from ._names import MOVES_OTHERS, SIGNED
from ._torch_loaders import accounted, sampler_batches
from ._torch_records import Canaries, batched_losses, cross_entropy
from ._types import Adjacency, Lens, Numbers
from .auditing import Audit, audit
from .claims import Account, account
from .errors import DosimeterWarning, InvalidInput, NotCertified, Unsupported
from .runs import Phase, Run

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

__all__ = ["Accountant", "Canaries", "Recorder", "is_poisson", "loader_batches"]

#: A history: noise multiplier, sample rate, steps.
History = Iterable[tuple[float, float, int]]


class Accountant(IAccountant):  # type: ignore[misc]
    """A drop-in for Opacus' accountants, by the name ``"dosimeter"``.

    ``get_epsilon`` is the certified upper end of the composition lens, in both directions, for the
    batches that the data loader really draws (:func:`loader_batches`). The history has Opacus' own
    form, so states of its ``rdp``, ``gdp`` and ``prv`` accountants are loaded, and its accountants load ours with the name changed (:meth:`export_state_dict`).

    >>> accountant = Accountant.from_history([(1.0, 0.01, 1000)])
    >>> round(accountant.get_epsilon(delta=1e-5), 6)
    1.828237
    >>> len(accountant)
    1000
    """

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []
        #: How the loader draws batches, as keywords of a run; None where no loader was seen.
        self.batches: dict[str, Any] | None = None

    @classmethod
    def mechanism(cls) -> str:
        return "dosimeter"

    @classmethod
    def from_history(cls, history: History) -> Accountant:
        """An accountant with a past: ``(noise_multiplier, sample_rate, steps)`` in order."""
        accountant = cls()
        accountant.history = [(float(n), float(q), int(t)) for n, q, t in history]
        return accountant

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Notes one step; equal steps in a row are one entry of the history."""
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            noise, rate, count = self.history[-1]
            self.history[-1] = (noise, rate, count + 1)
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    def __len__(self) -> int:
        return sum(count for _, _, count in self.history)

    @property
    def poisson(self) -> bool | None:
        """Whether batches are Poisson; None where no loader was seen."""
        return None if self.batches is None else self.batches.get("sampling") == "poisson"

    def run(self) -> Run:
        """The training so far, with the batches that the loader draws.

        Adding or removing one record counts where it is covered; for shuffled batches, whose number
        it would change, zeroing out one record. Batches in the order of the data set count whole epochs:
        a part of one holds its first records for certain.

        Raises :class:`~dosimeter.InvalidInput` before the first step, and
        :class:`~dosimeter.Unsupported` for a loader that is not known.
        """
        if not self.history:
            raise InvalidInput("no step was taken yet")
        batches = dict(self.batches or {"sampling": "poisson"})
        problem = batches.pop("problem", None)
        if problem is not None:
            raise Unsupported(problem)
        phases = [
            Phase(noise_multiplier=noise, sample_rate=rate, steps=count)
            for noise, rate, count in accounted(self.history, batches)
        ]
        for key in ("rate_scale", "drawn_share"):
            batches.pop(key, None)
        adjacency: Adjacency = (
            "zero-out" if batches["sampling"] in MOVES_OTHERS else "add-remove"
        )
        return Run(adjacency=adjacency, phases=phases, **batches)

    def account(self, *, delta: Numbers | None = None, **questions: Any) -> Account:
        """Every lens on the training so far; the keywords of :func:`dosimeter.account`."""
        return account(self.run(), delta=delta, **questions)

    def get_epsilon(self, delta: float, lens: Lens = SIGNED, **_: Any) -> float:
        """Epsilon spent so far, from above; infinite where nothing can be certified.

        It is that of the batches the loader draws. For shuffled ones a record is used once in every
        epoch at most, and no amplification by sampling is counted; the number is about zeroing out
        one record. A warning says what was found where batches are not Poisson.
        """
        if not self.history:
            return 0.0
        try:
            run = self.run()
            if self.poisson is False:
                self._warn(
                    f"batches are not Poisson but {run.sampling}: this epsilon is about them, "
                    f"with adjacency {run.adjacency}"
                    + (", without amplification by sampling" if run.sampling in MOVES_OTHERS else "")
                )
            with warnings.catch_warnings():
                # The same has just been said about this loader.
                warnings.filterwarnings("ignore", message=".*Poisson analysis would report")
                claim = account(run, delta=delta, lens=lens, quantity="epsilon")[0]
        except (NotCertified, Unsupported) as refusal:
            warnings.warn(f"no finite epsilon: {refusal}", DosimeterWarning, stacklevel=2)
            return math.inf
        return claim.quoted

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """The callback that Opacus attaches to its optimizer; looks at the data loader first."""
        loader = _callers_loader()
        if loader is not None:
            self.batches = loader_batches(loader)
            if not self.poisson:
                self._warn(
                    "the data loader does not draw Poisson batches: "
                    + self.batches.get("problem", f"they are {self.batches['sampling']}")
                    + "; their epsilon can be far above that of Poisson batches: leave "
                    "poisson_sampling on, and do not replace the data loader that make_private returns"
                )
        hook: Callable[[Any], None] = super().get_optimizer_hook_fn(sample_rate)

        def checked(optimizer: Any) -> None:
            _refuse_old_adaclip(optimizer)
            hook(optimizer)

        return checked

    def _warn(self, text: str) -> None:
        warnings.warn(text, DosimeterWarning, stacklevel=3)

    def state_dict(self, destination: Any = None) -> Any:
        """Opacus' state, and how batches were drawn."""
        state = super().state_dict(destination)
        state["batches"] = None if self.batches is None else dict(self.batches)
        return state

    def export_state_dict(self, mechanism: str) -> dict[str, Any]:
        """The history as a state of another of Opacus' accountants, e.g. ``"rdp"``."""
        return {"history": list(self.history), "mechanism": mechanism}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Loads a state of this or of one of Opacus' own accountants."""
        if not state_dict:
            raise ValueError("the state is empty and cannot be loaded")
        for key in ("history", "mechanism"):
            if key not in state_dict:
                raise ValueError(f"the state has no `{key}` and cannot be loaded")
        if state_dict["mechanism"] not in (self.mechanism(), "rdp", "gdp", "prv"):
            raise ValueError(f"the history of a `{state_dict['mechanism']}` accountant cannot be read")
        self.history = [(float(n), float(q), int(t)) for n, q, t in state_dict["history"]]
        self.batches = state_dict.get("batches")
        # States of version 0.1 know only whether batches were Poisson.
        if self.batches is None and state_dict.get("poisson") is not None:
            self.batches = {"sampling": "poisson" if state_dict["poisson"] else "shuffle"}


register_accountant("dosimeter", Accountant, force=True)


def _callers_loader() -> Any:
    """The data loader that the `make_private` that is calling will return.

    Opacus hands an accountant the sample rate and nothing else, so its variables are looked at.
    """
    frame = inspect.currentframe()
    for _ in range(4):
        frame = None if frame is None else frame.f_back
        if frame is not None and frame.f_code.co_name == "make_private":
            return frame.f_locals.get("data_loader")
    return None


def is_poisson(loader: Any) -> bool:
    """Whether a data loader draws Poisson batches: one of Opacus, with its own sampler."""
    from opacus.utils import uniform_sampler

    kinds = (
        uniform_sampler.UniformWithReplacementSampler,
        uniform_sampler.DistributedUniformWithReplacementSampler,
    )
    return isinstance(getattr(loader, "batch_sampler", None), kinds)


def loader_batches(loader: Any) -> dict[str, Any]:
    """How a PyTorch data loader draws batches, as keywords of a run.

    Opacus' own sampler is Poisson. Batches that are cut from an order of the data set are named after the
    order; rates are those among the records that the sampler draws in an epoch.
    ``RandomSampler(replacement=True)`` draws every record of a batch anew: a fixed
    size with replacement. Any other sampler gets the key ``problem`` that says so.
    """
    return {"sampling": "poisson"} if is_poisson(loader) else sampler_batches(loader)


def _refuse_old_adaclip(optimizer: Any) -> None:
    """Before 1.6, Opacus told accountants the noise of AdaClip's gradients alone, without what its
    count of clipped records costs."""
    if "AdaClip" not in type(optimizer).__name__:
        return
    if tuple(int(part) for part in version("opacus").split(".")[:2]) < (1, 6):
        raise Unsupported(
            "adaptive clipping of Opacus before 1.6 reports too much noise to accountants; use "
            "Opacus 1.6 or newer, or clipping='flat'"
        )


class Recorder:
    """Watches an Opacus training: what it really sampled, and the scores of canaries.

    It sits on the optimizer that ``make_private`` returned, behind the accountant's hook. With the
    ``loader`` that ``make_private`` returned, it also counts how often each record is drawn. With
    ``model``, ``canaries`` and ``every``, canaries are scored once in ``every`` steps;
    :meth:`observe` scores them at any time, usually at the end. ``score(model, examples)`` gives
    one number for each canary, larger for members; the default is minus the cross-entropy loss of
    classification, of ``batch_size`` canaries at a time on the model's device.
    """

    def __init__(
        self,
        optimizer: Any,
        *,
        loader: Any = None,
        model: Any = None,
        canaries: Canaries | None = None,
        every: int | None = None,
        score: Callable[[Any, Any], Any] | None = None,
        batch_size: int = 256,
    ) -> None:
        if every is not None and (model is None or canaries is None or every < 1):
            raise InvalidInput("to score canaries along the training, give `model`, `canaries`, and `every` of at least 1")
        self.canaries = canaries
        self.score = score or (lambda model, examples: negative_loss(model, examples, batch_size))
        self.batch_sizes: list[int] = []
        self.noise_multipliers: list[float] = []
        self.scores: NDArray[numpy.float64] | None = None
        #: Steps taken before an observation, and its scores.
        self.observations: list[tuple[int, NDArray[numpy.float64]]] = []
        #: How often each record was drawn, and the sizes of the batches that were drawn.
        self.inclusions: NDArray[numpy.int64] | None = None
        self.drawn: list[int] = []
        self._model, self._every = model, every
        self._next: Callable[[Any], None] | None = optimizer.step_hook
        self._pending = 0
        self._count(optimizer)
        optimizer.attach_step_hook(self._hook)
        if loader is not None:
            self._watch(loader)

    def _count(self, optimizer: Any) -> None:
        """Counts the records of every part of a batch that is clipped, also where Opacus splits a
        batch into parts (``BatchMemoryManager``) and takes a step after the last one only."""
        clip = getattr(optimizer, "clip_and_accumulate", None)
        if clip is None:
            return

        def counted() -> Any:
            self._pending += _batch_size(optimizer)
            return clip()

        optimizer.clip_and_accumulate = counted

    def _watch(self, loader: Any) -> None:
        """Counts what the loader's sampler of batches draws; it cannot be replaced, so its class is."""
        import numpy

        sampler = getattr(loader, "batch_sampler", None)
        if sampler is None:
            raise InvalidInput("the loader has no sampler of batches to watch")
        counts = numpy.zeros(len(loader.dataset), dtype=numpy.int64)
        self.inclusions = counts
        recorder, kind = self, type(sampler)

        class Watched(kind):  # type: ignore[misc, valid-type]
            def __iter__(self) -> Iterator[Any]:
                for batch in super().__iter__():
                    recorder.drawn.append(len(batch))
                    numpy.add.at(counts, numpy.asarray(batch, dtype=numpy.int64), 1)
                    yield batch

        Watched.__name__ = kind.__name__
        sampler.__class__ = Watched

    def _hook(self, optimizer: Any) -> None:
        if self._every is not None and len(self.batch_sizes) % self._every == 0:
            self.observe(self._model)
        self.batch_sizes.append(self._pending)
        self._pending = 0
        self.noise_multipliers.append(float(optimizer.noise_multiplier))
        if self._next is not None:
            self._next(optimizer)

    def check_sampling(self, *, dataset_size: int, sample_rate: float) -> str | None:
        """Evidence against Poisson batches, or None.

        Sizes of Poisson batches are binomial, and so is the number of batches that a record is in:
        means and variances are known. All are compared at six standard errors, so a Poisson
        training is suspected once in about a hundred million trainings.
        """
        sizes = self.drawn if self.inclusions is not None else self.batch_sizes
        if len(sizes) < 30:
            return f"{len(sizes)} steps are too few to tell"
        if not any(sizes):
            return "the records of a batch are not seen here; give the recorder the loader"
        mean = dataset_size * sample_rate
        found = sum(sizes) / len(sizes)
        if abs(found - mean) > 6 * math.sqrt(mean * (1 - sample_rate) / len(sizes)):
            return f"batches have {found:.1f} records on average instead of {mean:.1f}"
        unusual = _dispersion(sizes, dataset_size, sample_rate)
        if unusual is not None:
            return f"batch sizes have {unusual}: not Poisson"
        if self.inclusions is None:
            return None
        if len(self.inclusions) != dataset_size:
            return f"the loader draws from {len(self.inclusions)} records, not {dataset_size}"
        unusual = _dispersion(self.inclusions.tolist(), len(self.drawn), sample_rate)
        if unusual is not None:
            return f"the numbers of batches that a record is in have {unusual}: not Poisson"
        return None

    def run(self, *, sample_rate: float, dataset_size: int | None = None) -> Run:
        """The steps that were really taken, as a run."""
        accountant = Accountant()
        for noise in self.noise_multipliers:
            accountant.step(noise_multiplier=noise, sample_rate=sample_rate)
        return Run(phases=accountant.run().phases, dataset_size=dataset_size, sampling="poisson")

    def observe(self, model: Any) -> NDArray[numpy.float64]:
        """Scores all canaries with the model as it is now, and keeps the scores."""
        import numpy

        if self.canaries is None:
            raise InvalidInput("the recorder has no canaries to score")
        found = self.score(model, self.canaries.examples)
        self.scores = numpy.asarray(found, dtype=numpy.float64).reshape(-1)
        if len(self.scores) != len(self.canaries):
            raise InvalidInput(f"{len(self.scores)} scores for {len(self.canaries)} canaries")
        self.observations.append((len(self.batch_sizes), self.scores))
        return self.scores

    def audit(self, **options: Any) -> Audit:
        """Audits the last scores as canaries of one training; the keywords of
        :func:`dosimeter.audit`."""
        if self.scores is None or self.canaries is None:
            raise InvalidInput("there are no scores yet; call observe(model) first")
        included = self.canaries.included
        options = {"design": "one-run"} | options
        return audit(members=self.scores[included], nonmembers=self.scores[~included], **options)


def _dispersion(counts: Sequence[int], trials: int, rate: float) -> str | None:
    """Counts that vary otherwise than Binomial(trials, rate) does, by six standard errors."""
    mean, variance = trials * rate, trials * rate * (1 - rate)
    found = sum((count - mean) ** 2 for count in counts) / len(counts)
    # The fourth central moment of a binomial, for the error of its variance.
    fourth = variance * (1 + 3 * variance - 6 * variance / trials)
    if abs(found - variance) > 6 * math.sqrt(max(fourth - variance**2, 0.0) / len(counts)):
        return f"variance {found:.2f} instead of {variance:.2f}"
    return None


def _batch_size(optimizer: Any) -> int:
    """Records in the batch of this step, from the per-example gradients that were clipped."""
    for parameter in optimizer.params:
        gradients = getattr(parameter, "grad_sample", None)
        if gradients is None:
            continue
        parts = gradients if isinstance(gradients, list) else [gradients]
        return sum(int(part.shape[0]) for part in parts)
    return 0


def negative_loss(model: Any, examples: Any, batch_size: int = 256) -> NDArray[numpy.float64]:
    """Minus the cross-entropy of each (input, label), with the model in evaluation mode, batch by
    batch on the model's device."""
    import numpy

    found = batched_losses(model, examples, cross_entropy, batch_size)
    return numpy.concatenate([-losses for losses in found])
