"""What a PyTorch loop really does. Public in :mod:`dosimeter.torch`."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch.utils._pytree import tree_leaves, tree_map

from ._directions import CHUNK
from ._torch_gradients import Flat, GradientCanary, _local, uncompiled
from ._torch_records import Loss, device_of, per_record, to_device
from ._types import Document
from .auditing import Audit
from .errors import InvalidInput, Unsupported
from .recording import BEGINNING, Check, Recording, Watching, repeated
from .runs import Run, RunLike

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Layers through which one record of a batch reaches the gradient of another.
MIXING = (
    torch.nn.modules.batchnorm._BatchNorm,
    torch.nn.SyncBatchNorm,
)
#: Entries that are compared, to find noise that occurs twice.
WINDOW = 4096
#: Records below which vmap costs more than one record at a time (ResNet-18 on a processor: 2.7 times).
TOGETHER = 16
NO_DIVISOR = "give `divisor` or `dataset_size`: what is the clipped sum divided by?"


def expected_batch(claim: Run, dataset_size: int | None) -> float | None:
    """By how much a loop divides its clipped sum unless it says so: the expected batch size."""
    records = dataset_size or claim.dataset_size
    return None if records is None else records * float(claim.phases[0].sample_rate)


class Recorder(Watching):
    """Watches a training of any PyTorch loop and tests it against ``claim``.

    ``loss(model, batch)`` gives the loss of each record. At the first step and every ``every`` steps
    after it, the recorder computes the sum of clipped gradients of the step's batch anew and
    compares: what is left of the gradient that reaches the optimizer, times ``divisor``, must be
    the claimed noise. ``divisor`` is the public number by which the loop divides its clipped sum:
    the expected batch size unless it is given. Without ``loss``, tell the clipped sum by
    :meth:`summed` before noise is added; then clipping itself is not tested. (Opacus' optimizers
    are asked for it.)

    Iterate over ``recorder.watch(loader)`` in place of the loader, or tell every batch by
    :meth:`batch`. ``canaries`` are :class:`GradientCanary` s, which the recorder then inserts.

    :class:`dosimeter.recording.Watching` says what it found.
    A healthy training is accused with probability ``false_alarm`` at most. The state is kept in
    ``optimizer.state_dict()``, so that a resumed training is recorded as a whole.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        *,
        claim: RunLike,
        loss: Loss | None = None,
        dataset_size: int | None = None,
        divisor: float | None = None,
        every: int = 100,
        canaries: GradientCanary | None = None,
        false_alarm: float = 1e-4,
        memory: int = 1 << 28,
    ) -> None:
        if every < 1:
            raise InvalidInput(f"every is {every}; give a whole number of at least 1")
        self.recording = Recording(claim, dataset_size=dataset_size, false_alarm=false_alarm)
        self.model, self.loss, self.every, self.canaries = _inner(model), loss, every, canaries
        self.optimizer = getattr(optimizer, "original_optimizer", optimizer)
        self.flat = Flat(optimizer)
        self.divisor = divisor or expected_batch(self.recording.claim, dataset_size)
        self.memory = memory
        self._outer = model
        self._batches: list[Any] = []
        self._records: list[Any] | None = []
        self._size = 0
        self._told = False
        self._summed: list[Any] | None = None
        self._resumed = False
        self._known = {id(piece.parameter) for piece in self.flat.pieces}
        if canaries is not None:
            canaries.detach()
        self._hooks = [
            self.optimizer.register_step_pre_hook(uncompiled(lambda *_: self._step())),
            self.optimizer.register_state_dict_post_hook(self._save),
            self.optimizer.register_load_state_dict_pre_hook(self._load),
        ]
        self._look_at_layers()

    def detach(self) -> None:
        """Lets go of the optimizer."""
        for hook in self._hooks:
            hook.remove()

    # What is told.

    def watch(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches; notes which records are in each."""
        sampler = getattr(loader, "batch_sampler", None)
        drawn: deque[Any] = deque()
        restore = None
        if sampler is not None:
            restore = type(sampler)
            _listen(sampler, drawn)
        try:
            for batch in loader:
                self.batch(batch, records=drawn.popleft() if drawn else None)
                yield batch
        finally:
            if sampler is not None:
                sampler.__class__ = restore

    def batch(self, batch: Any, *, records: Any = None) -> None:
        """The next step is taken on this batch; several add up, as gradients do. ``records`` are
        the numbers of its records in the data set."""
        size = _size(batch) if records is None else len(records)
        self._told = True
        self._size += size
        if size:
            self._batches.append(batch)
        if records is None or self._records is None:
            self._records = None
        else:
            self._records.extend(records)

    def summed(self, gradients: Iterable[Any]) -> None:
        """The clipped sum, before noise: a tensor for each parameter of the optimizer."""
        self._summed = [part.detach().clone() for part in gradients]
        if len(self._summed) != len(self.flat.pieces):
            raise InvalidInput(
                f"{len(self._summed)} tensors for {len(self.flat.pieces)} parameters"
            )

    # What happens at a step.

    def _step(self) -> None:
        recording = self.recording
        told = self._told
        sizes, records = self._everywhere(self._size), self._records
        if _ranks() > 1:
            records = None
        # The first step of a session is the one whose noise an earlier session may have drawn.
        due = self._resumed or recording.steps % self.every == 0
        self._resumed = False
        recording.step(size=sizes if told else None, records=records if told else None)
        residual = self._look(sizes) if due else None
        if self.canaries is not None:
            self.canaries.add_(residual)
        self._batches, self._records, self._size, self._summed = [], [], 0, None
        self._told = False

    def _look(self, size: int) -> list[Any] | None:
        """Compares the gradient with the sum of clipped ones; gives what is left, the noise."""
        recording = self.recording
        if self.divisor is None:
            raise InvalidInput(NO_DIVISOR)
        total = self._clipped_sum()
        if total is None:
            return None
        scale = float(recording.claim.phases[0].noise_multiplier) * recording.claim.clip_norm
        energy = along = signal = 0.0
        for (gradient, _), part in zip(self._all_gradients(), total, strict=True):
            expected = part.reshape(-1)
            signal += product(expected, expected)
            # In place: from here on the sum's memory holds the residual.
            expected.mul_(-1.0).add_(gradient.to(expected.dtype), alpha=self.divisor)
            energy += product(expected, expected)
        norm = math.sqrt(signal)
        if norm > 0.0:
            # <R, S> from what is left: S = divisor * gradient - R.
            along = -energy
            for (gradient, _), part in zip(self._all_gradients(), total, strict=True):
                along += self.divisor * product(part.reshape(-1), gradient)
            along /= norm * scale
        again, before = self._repetitions([part.reshape(-1) for part in total])
        recording.check(
            Check(
                step=recording.steps,
                degrees=self.flat.total,
                energy=energy / scale**2,
                along=along,
                signal=norm / scale,
                size=size,
                exact=self._is_exact(),
                repeated=again,
                before=before,
            )
        )
        return total

    def _all_gradients(self) -> Iterator[tuple[Any, Any]]:
        for piece in self.flat.pieces:
            gradient = piece.parameter.grad
            if gradient is None:
                gradient = torch.zeros_like(piece.parameter)
            yield _local(gradient.detach()).reshape(-1), piece

    def _clipped_sum(self) -> list[Any] | None:
        if self._summed is not None:
            return self._summed
        parameters = [piece.parameter for piece in self.flat.pieces]
        if self.loss is None:
            # Opacus keeps the clipped sum beside the gradient.
            kept = [getattr(parameter, "summed_grad", None) for parameter in parameters]
            if any(part is None for part in kept):
                self.recording.note("clipping and noise were not looked at: give `loss`")
                return None
            return [part.detach().clone() for part in kept if part is not None]
        if self.flat.sharded:
            raise Unsupported("with fully_shard, tell the clipped sum by `summed`")
        if self._mixing():
            return None
        if not self._told:
            self.recording.note("a step was taken whose batch was not told; see watch and batch")
            return None
        with self._quiet(), torch.enable_grad():
            # Filled by the first batch, so that no second copy of the parameters is held.
            sums: list[Any] = [None] * len(parameters)
            for batch in self._batches:
                moved = to_device(batch, device_of(self.model))
                _add_clipped(self, moved, parameters, sums)
            found = [
                torch.zeros_like(parameter) if part is None else part
                for parameter, part in zip(parameters, sums, strict=True)
            ]
        if _ranks() > 1:
            for part in found:
                torch.distributed.all_reduce(part)
        return found

    def _quiet(self) -> Any:
        """Opacus' hooks would take these passes for the training's."""
        return _HooksOff(self._outer)

    def _repetitions(self, parts: list[Any]) -> tuple[float, float]:
        """p-values of noise that occurs twice in this residual, and in an earlier one."""
        sizes = [len(part) for part in parts]
        starts = numpy.concatenate(([0], numpy.cumsum(sizes)))
        total = int(starts[-1])
        window = min(WINDOW, total // 8)
        if window < 16:
            return 1.0, 1.0

        def piece(first: int, last: int) -> NDArray[numpy.float64]:
            found = []
            for part, begin in zip(parts, starts, strict=False):
                low, high = max(first - int(begin), 0), min(last - int(begin), len(part))
                if low < high:
                    found.append(part[low:high].double().cpu().numpy())
            return numpy.concatenate(found) if found else numpy.zeros(0)

        largest = int(starts[int(numpy.argmax(sizes))])
        again = repeated(piece, total, starts=sorted({0, largest}), window=window)
        return again, self.recording.known_noise(piece(0, min(window, BEGINNING)))

    # What the model is.

    def _mixing(self) -> list[str]:
        return [
            name
            for name, module in self.model.named_modules()
            if isinstance(module, MIXING) and module.training
        ]

    def _look_at_layers(self) -> None:
        kinds = [
            f"{name or 'the model'} ({type(module).__name__})"
            for name, module in self.model.named_modules()
            if isinstance(module, MIXING) and (module.training or module.track_running_stats)
            and self.model.training
        ]
        if kinds:
            self.recording.accuse(
                "mixed records",
                f"{kinds[0]} mixes the records of a batch: a record's gradient depends on others, "
                "and clipping each does not bound the influence of one",
            )

    def _is_exact(self) -> bool:
        if self._summed is not None or self.loss is None:
            return True
        for module in self.model.modules():
            if "Dropout" in type(module).__name__ and module.training and getattr(module, "p", 0):
                self.recording.note("dropout is random: clipping and dividing were not tested")
                return False
        coarse = {torch.float16, torch.bfloat16}
        if any(piece.parameter.dtype in coarse for piece in self.flat.pieces):
            self.recording.note("parameters of 16 bits are rounded: clipping was not tested")
            return False
        return True

    def _everywhere(self, count: int) -> int:
        if _ranks() == 1:
            return count
        total = torch.tensor([count], device=self.flat.device)
        torch.distributed.all_reduce(total)
        return int(total)

    # What is found.

    def audit(self, **options: Any) -> Audit:
        """Audits the gradient canaries; the keywords of :func:`dosimeter.audit`."""
        if self.canaries is None:
            raise InvalidInput("the recorder has no canaries to audit")
        return self.canaries.audit(**options)

    def _save(self, _: Any, state: Document) -> None:
        kept = {"recording": self.recording.state_dict()}
        if self.canaries is not None:
            kept["canaries"] = self.canaries.state_dict()
        state["dosimeter"] = kept

    def _load(self, _: Any, state: Document) -> None:
        kept = state.get("dosimeter")
        if kept is not None:
            self.recording.load_state_dict(kept["recording"])
            self._resumed = True
            if self.canaries is not None and "canaries" in kept:
                self.canaries.load_state_dict(kept["canaries"])


class _HooksOff:
    def __init__(self, model: Any) -> None:
        self.model = model if hasattr(model, "disable_hooks") else None

    def __enter__(self) -> None:
        if self.model is not None:
            self.model.disable_hooks()

    def __exit__(self, *_: object) -> None:
        if self.model is not None:
            self.model.enable_hooks()


class _Whole(torch.nn.Module):  # type: ignore[misc]
    """The loss of a batch as a module, so that parameters can be given to it."""

    def __init__(self, model: Any, loss: Loss) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, batch: Any) -> Any:
        return self.loss(self.model, batch)


def _add_clipped(recorder: Recorder, batch: Any, parameters: list[Any], found: list[Any]) -> None:
    """Adds the clipped gradients of a batch's records."""
    assert recorder.loss is not None
    bound = recorder.recording.claim.clip_norm
    count = _size(batch)
    together = recorder.memory // (4 * max(recorder.flat.total, 1))
    if together >= TOGETHER:
        try:
            _add_together(recorder, batch, parameters, found, bound, together)
            return
        except (RuntimeError, NotImplementedError) as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            recorder.recording.note(f"records were looked at one by one: {str(error)[:80]}")
    # Norms one record at a time, then one backward pass of the weighted losses: no more memory
    # than a copy of the parameters.
    factors = []
    for index in range(count):
        one = _records(batch, index, index + 1)
        losses = per_record(recorder.loss(recorder.model, one), 1)
        gradients = torch.autograd.grad(losses.sum(), parameters, allow_unused=True)
        flat = [g.reshape(-1) for g in gradients if g is not None]
        squares = sum(product(part, part) for part in flat)
        factors.append(min(1.0, bound / math.sqrt(squares)) if squares > 0.0 else 1.0)
        del gradients, flat, losses
    losses = per_record(recorder.loss(recorder.model, batch), count)
    weights = torch.tensor(factors, device=losses.device, dtype=losses.dtype)
    gradients = torch.autograd.grad((weights * losses).sum(), parameters, allow_unused=True)
    _add(found, list(gradients))


def _add_together(
    recorder: Recorder, batch: Any, parameters: list[Any], found: list[Any], bound: float, many: int
) -> None:
    """The same by vmap, ``many`` records at a time."""
    assert recorder.loss is not None
    whole = _Whole(recorder.model, recorder.loss)
    names = {id(value): name for name, value in whole.named_parameters()}
    missing = [value for value in parameters if id(value) not in names]
    if missing:
        raise InvalidInput("the optimizer has parameters that are not the model's")
    values = {names[id(value)]: value.detach() for value in parameters}
    order = [names[id(value)] for value in parameters]

    def one(given: Any, record: Any) -> Any:
        single = tree_map(lambda part: part.unsqueeze(0) if torch.is_tensor(part) else part, record)
        losses = torch.func.functional_call(whole, given, (single,))
        return per_record(losses, 1).sum()

    gradients_of: Callable[..., Any] = torch.func.vmap(
        torch.func.grad(one), in_dims=(None, 0), randomness="different"
    )
    partial = [torch.zeros_like(value) for value in parameters]
    count = _size(batch)
    for start in range(0, count, many):
        gradients = gradients_of(values, _records(batch, start, min(start + many, count)))
        rows = [gradients[name].flatten(1) for name in order]
        norms = sum(row.double().pow(2).sum(1) for row in rows).sqrt()
        factors = (bound / norms).clamp(max=1.0).nan_to_num(1.0)
        for part, row in zip(partial, rows, strict=True):
            part.add_((factors.to(row.dtype) @ row).view(part.shape))
    _add(found, partial)


def product(one: Any, other: Any) -> float:
    """The inner product of two flat tensors in doubles, without a copy of either in doubles."""
    pieces = zip(one.split(CHUNK), other.split(CHUNK), strict=True)
    return sum(float((a.double() * b.double()).sum()) for a, b in pieces)


def _add(sums: list[Any], addends: list[Any]) -> None:
    """Adds in place; the first addend becomes the sum."""
    for place, addend in enumerate(addends):
        if sums[place] is None:
            sums[place] = addend
        elif addend is not None:
            sums[place].add_(addend)


def _records(batch: Any, start: int, stop: int) -> Any:
    return tree_map(lambda part: part[start:stop] if torch.is_tensor(part) else part, batch)


def _size(batch: Any) -> int:
    """Records of a batch: the length of its tensors."""
    sizes = {len(part) for part in tree_leaves(batch) if torch.is_tensor(part) and part.ndim}
    if len(sizes) != 1:
        raise InvalidInput(
            f"the records of a batch cannot be counted: its tensors have {sorted(sizes)} rows; "
            "tell its `records`"
        )
    return int(sizes.pop())


def _inner(model: Any) -> Any:
    """The module inside what torch.compile, DistributedDataParallel and Opacus put around it."""
    while True:
        for name in ("_orig_mod", "module", "_module"):
            found = getattr(model, name, None)
            if isinstance(found, torch.nn.Module):
                model = found
                break
        else:
            return model


def _ranks() -> int:
    there = torch.distributed
    if there.is_available() and there.is_initialized():
        return int(there.get_world_size())
    return 1


def _listen(sampler: Any, drawn: deque[Any]) -> None:
    """Notes what a sampler of batches draws; a loader's cannot be replaced, so its class is."""
    kind = type(sampler)

    class Watched(kind):  # type: ignore[misc, valid-type]
        def __iter__(self) -> Iterator[Any]:
            for batch in super().__iter__():
                drawn.append(list(batch))
                yield batch

    Watched.__name__ = kind.__name__
    sampler.__class__ = Watched
