"""Gradient canaries for any PyTorch loop. Public in :mod:`dosimeter.torch`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy
import torch

from ._directions import CHUNK, Directions, Kind, mixed
from ._types import Document
from .auditing import Audit, audit
from .errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: What torch.compile(optimizer.step, fullgraph=True) is told.
ONE_GRAPH = (
    "dosimeter looks at every step, outside of the compiled graph: compile optimizer.step without "
    "fullgraph=True"
)


def uncompiled(hook: Callable[..., None]) -> Any:
    """A hook that stays as it is when the optimizer's step is compiled: the graph breaks there."""
    try:
        return torch.compiler.disable(hook, reason=ONE_GRAPH)
    except TypeError:
        # Before PyTorch 2.7 no reason can be given.
        return torch.compiler.disable(hook)


@dataclass(frozen=True)
class Piece:
    """One parameter, or the part of it that this process holds, and where it begins."""

    parameter: Any
    offset: int
    #: Whether other processes hold other parts.
    sharded: bool


class Flat:
    """The parameters of an optimizer as one long vector, which is never written out."""

    def __init__(self, optimizer: Any) -> None:
        inner = getattr(optimizer, "original_optimizer", optimizer)
        parameters = [
            parameter
            for group in inner.param_groups
            for parameter in group["params"]
            if parameter.requires_grad
        ]
        if not parameters:
            raise InvalidInput("the optimizer has no parameters that are trained")
        self.pieces: list[Piece] = []
        self.total = 0
        for parameter in parameters:
            begin, sharded = _placed(parameter)
            self.pieces.append(Piece(parameter, self.total + begin, sharded))
            self.total += parameter.numel()
        self.sharded = any(piece.sharded for piece in self.pieces)
        directions = {bool(group.get("maximize", False)) for group in inner.param_groups}
        if len(directions) > 1:
            raise Unsupported("some groups of the optimizer maximise and some minimise")
        #: -1 where a step goes against the gradient.
        self.sign = 1.0 if directions.pop() else -1.0

    @property
    def device(self) -> Any:
        return self.pieces[0].parameter.device

    def values(self) -> Iterator[tuple[Any, Piece]]:
        """Flat local parameters."""
        for piece in self.pieces:
            yield _local(piece.parameter.detach()).reshape(-1), piece

    def gradients(self) -> Iterator[tuple[Any, Piece]]:
        """Flat local gradients that reach the optimizer; missing ones are left out."""
        for piece in self.pieces:
            gradient = piece.parameter.grad
            if gradient is not None:
                if gradient.is_sparse:
                    raise Unsupported("sparse gradients (torch.sparse) are not looked at")
                yield _local(gradient.detach()).reshape(-1), piece


def _placed(parameter: Any) -> tuple[int, bool]:
    """Where the local part of a parameter begins in it, and whether there are others."""
    name = type(parameter).__name__
    if name == "FlatParameter" or hasattr(parameter, "_is_flat_param"):
        raise Unsupported(
            "FullyShardedDataParallel (FSDP1) hides its parameters; use torch.distributed.fsdp."
            "fully_shard"
        )
    if hasattr(parameter, "ds_id"):
        raise Unsupported("DeepSpeed ZeRO-3 hides its parameters; use stage 2, or fully_shard")
    if parameter.is_complex():
        raise Unsupported("complex parameters are not looked at")
    placements = getattr(parameter, "placements", None)
    if placements is None:
        return 0, False
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    split = [placement for placement in placements if not placement.is_replicate()]
    if not split:
        return 0, False
    if len(split) > 1 or not isinstance(split[0], Shard) or split[0].dim != 0:
        raise Unsupported(f"a parameter placed as {placements} is not sharded along its rows")
    _, offset = compute_local_shape_and_global_offset(
        parameter.shape, parameter.device_mesh, placements
    )
    return int(offset[0]) * (parameter.numel() // max(parameter.shape[0], 1)), True


def _local(tensor: Any) -> Any:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def signs(seed: int, start: int, stop: int, device: Any, dtype: Any) -> Any:
    """The signs of :func:`dosimeter._directions.signs`, on a device."""
    words = torch.arange(start >> 5, (stop + 31) >> 5, device=device, dtype=torch.int64)
    bits = (mixed(words, seed).to(torch.int32).unsqueeze(1) >> _shifts(device)) & 1
    skip = start - (start >> 5 << 5)
    return bits.reshape(-1)[skip : skip + stop - start].to(dtype).mul_(-2).add_(1)


def _shifts(device: Any) -> Any:
    return torch.arange(32, device=device, dtype=torch.int32)


def add_pattern(directions: Directions, pattern: Any, flat: Any, offset: int) -> None:
    """Adds a sum of canaries, given by its pattern, to entries that begin at ``offset``."""
    repeats, period = directions.repeats, directions.period
    end = min(offset + flat.numel(), directions.support)
    dtype = torch.float64 if flat.dtype == torch.float64 else torch.float32
    values = torch.as_tensor(pattern, device=flat.device).to(dtype)
    for start in range(offset, end, CHUNK):
        stop = min(start + CHUNK, end)
        if directions.kind == "signs":
            first = start % period
            times = (stop - start + first + period - 1) // period
            spread = values.repeat(times)[first : first + stop - start]
        else:
            first, last = start // repeats, (stop - 1) // repeats + 1
            spread = values[first:last].repeat_interleave(repeats)
            spread = spread[start - first * repeats :][: stop - start]
        spread = spread * signs(directions.seed, start, stop, flat.device, dtype)
        flat[start - offset : stop - offset].add_(spread.to(flat.dtype))


def sum_pattern(directions: Directions, flat: Any, offset: int, sums: Any) -> None:
    """Adds the signed sums of the entries that begin at ``offset`` to ``sums``, in doubles."""
    repeats, period = directions.repeats, directions.period
    end = min(offset + flat.numel(), directions.support)
    for start in range(offset, end, CHUNK):
        stop = min(start + CHUNK, end)
        # Doubles where a device has them; Apple's has not.
        wide = torch.float32 if flat.device.type == "mps" else torch.float64
        signed = flat[start - offset : stop - offset].to(wide)
        signed = signed * signs(directions.seed, start, stop, flat.device, wide)
        width = period if directions.kind == "signs" else repeats
        first = start % width
        rest = -(first + stop - start) % width
        table = torch.nn.functional.pad(signed, (first, rest)).view(-1, width)
        if directions.kind == "signs":
            sums += table.sum(0).to(sums.dtype)
        else:
            block = start // repeats
            sums[block : block + table.shape[0]] += table.sum(1).to(sums.dtype)


class GradientCanary:
    """Gradients of imaginary records, in the training by a coin, and how far the model follows.

    A canary is a record whose clipped gradient is ``clip_norm`` times a fixed direction. At every
    step each canary that is in is sampled with probability ``sample_rate``, and what is sampled is
    added to the gradient just before ``optimizer.step()`` takes it, divided by ``divisor``, the
    number by which the loop divides its clipped sum. Summing, adding noise and dividing are
    linear, so this is the same as adding it to the clipped sum itself.

    ``count`` canaries have orthonormal ``direction`` s: ``"signs"``, ``"blocks"`` or
    ``"coordinates"``, generated from ``seed`` and never stored; or, for one canary, a list of
    tensors like the parameters. With ``member=None`` each canary is in with probability 1/2
    (:meth:`audit` in one run); ``True`` or ``False`` decides for all (many trainings, one canary).

    ``observe="last"`` scores how far the parameters moved along each direction; ``"all"`` adds up
    what every update shows: the log-likelihood ratio where ``noise_multiplier`` is given, else the
    gradient's component.

    Works with any optimizer, ``torch.compile`` of the model and of ``optimizer.step``, gradient
    accumulation, GradScaler, DistributedDataParallel (the same seed on every rank) and
    ``fully_shard``. Refused by name: FSDP1, DeepSpeed ZeRO-3, sparse gradients, fused optimizers
    that unscale inside their step, a step compiled with ``fullgraph=True``.
    """

    def __init__(
        self,
        optimizer: Any,
        *,
        clip_norm: float,
        sample_rate: float,
        divisor: float,
        count: int = 1,
        direction: Kind | Sequence[Any] = "signs",
        seed: int = 0,
        member: bool | None = None,
        observe: Literal["last", "all"] = "last",
        noise_multiplier: float | None = None,
    ) -> None:
        if not (clip_norm > 0.0 and divisor > 0.0 and 0.0 < sample_rate <= 1.0):
            raise InvalidInput(
                f"clip_norm is {clip_norm}, divisor {divisor} and sample_rate {sample_rate}; the first "
                "two must be above 0, the rate in (0, 1]"
            )
        if observe not in ("last", "all"):
            raise InvalidInput(f"`{observe}` cannot be observed; choose last or all")
        self.optimizer = getattr(optimizer, "original_optimizer", optimizer)
        self.flat = Flat(optimizer)
        self.clip_norm, self.sample_rate, self.divisor = clip_norm, sample_rate, divisor
        self.count, self.seed, self.observe = count, seed, observe
        self.noise_multiplier = noise_multiplier
        self._given: list[Any] | None = None
        if isinstance(direction, str):
            self.directions = Directions(cast(Kind, direction), count, self.flat.total, seed)
        else:
            self.directions = Directions("signs", 1, self.flat.total, seed)
            self._given = self._vector(direction)
        coins = numpy.random.default_rng([seed, 0xC014]).random(count) < 0.5
        #: Which canaries are in.
        self.included: NDArray[numpy.bool_] = (
            coins if member is None else numpy.full(count, bool(member))
        )
        self._fair = member is None
        self.steps = 0
        #: How often each canary was sampled.
        self.sampled: NDArray[numpy.int64] = numpy.zeros(count, dtype=numpy.int64)
        self._evidence: NDArray[numpy.float64] = numpy.zeros(count)
        self._start = self.products(self.flat.values()) if observe == "last" else None
        self._hook = self.optimizer.register_step_pre_hook(uncompiled(lambda *_: self.add_()))

    def _vector(self, direction: Sequence[Any]) -> list[Any]:
        if self.count != 1:
            raise InvalidInput(f"one vector was given for {self.count} canaries")
        if len(direction) != len(self.flat.pieces) or self.flat.sharded:
            raise InvalidInput(
                f"a vector has one tensor for each of the {len(self.flat.pieces)} parameters, "
                "which are not sharded"
            )
        norm = math.sqrt(sum(float(part.double().pow(2).sum()) for part in direction))
        if not 0.0 < norm < math.inf:
            raise InvalidInput("the given vector has no direction")
        return [part.detach().reshape(-1) / norm for part in direction]

    def detach(self) -> None:
        """Takes the canaries out of the optimizer's step."""
        self._hook.remove()

    def add_(self, residual: Sequence[Any] | None = None) -> None:
        """Adds what this step samples to the gradients; the optimizer's hook calls it.

        ``residual`` is the gradient times ``divisor`` without the other records' clipped sum, where
        that is known: then ``observe="all"`` sees what an attacker sees who knows all other records.
        """
        if getattr(self.optimizer, "grad_scale", None) is not None:
            raise Unsupported(
                "a fused optimizer unscales gradients inside its step; leave fused=True out, or "
                "call scaler.unscale_(optimizer) first"
            )
        generator = numpy.random.Generator(numpy.random.Philox(key=[self.seed, self.steps]))
        drawn = (generator.random(self.count) < self.sample_rate) & self.included
        self.steps += 1
        self.sampled += drawn
        if drawn.any():
            self._insert(numpy.where(drawn, self.clip_norm / self.divisor, 0.0))
        if self.observe == "all":
            if residual is None:
                seen = self.products(self.flat.gradients()) * (self.divisor / self.clip_norm)
            else:
                known = zip(residual, self.flat.pieces, strict=True)
                flat = ((part.reshape(-1), piece) for part, piece in known)
                # Directions are orthonormal: what was inserted is seen as it is.
                seen = self.products(flat) / self.clip_norm + drawn
            self._evidence += self._likelihood(seen)

    def _insert(self, coefficients: NDArray[numpy.float64]) -> None:
        for piece in self.flat.pieces:
            if piece.parameter.grad is None:
                piece.parameter.grad = torch.zeros_like(piece.parameter)
        if self._given is not None:
            for (gradient, piece), part in zip(self.flat.gradients(), self._given, strict=True):
                changed = gradient.add(part.to(gradient), alpha=float(coefficients[0]))
                _write(piece, changed)
            return
        if self.directions.kind == "coordinates":
            self._insert_coordinates(coefficients)
            return
        pattern = self.directions.pattern(coefficients)
        for gradient, piece in self.flat.gradients():
            add_pattern(self.directions, pattern, gradient, piece.offset)
            _write(piece, gradient)

    def _insert_coordinates(self, coefficients: NDArray[numpy.float64]) -> None:
        places = self.directions.coordinates()
        for gradient, piece in self.flat.gradients():
            here = (places >= piece.offset) & (places < piece.offset + gradient.numel())
            if here.any():
                index = torch.as_tensor(places[here] - piece.offset, device=gradient.device)
                added = torch.as_tensor(coefficients[here], device=gradient.device)
                gradient.index_add_(0, index, added.to(gradient.dtype))
                _write(piece, gradient)

    def products(self, tensors: Iterator[tuple[Any, Piece]]) -> NDArray[numpy.float64]:
        """Inner products of a flat vector with all directions."""
        if self._given is not None:
            pairs = zip(tensors, self._given, strict=True)
            product = sum(float((flat.double() * part.double()).sum()) for (flat, _), part in pairs)
            return numpy.array([product])
        device = self.flat.device
        wide = torch.float32 if device.type == "mps" else torch.float64
        # Whole parameters, and those of which other processes hold the rest.
        sums = torch.zeros((2, self.directions.period), dtype=wide, device=device)
        places = self.directions.coordinates() if self.directions.kind == "coordinates" else None
        for flat, piece in tensors:
            row = sums[int(piece.sharded)]
            if places is None:
                sum_pattern(self.directions, flat, piece.offset, row)
                continue
            here = (places >= piece.offset) & (places < piece.offset + flat.numel())
            index = torch.as_tensor(places[here] - piece.offset, device=flat.device)
            row[torch.as_tensor(here, device=device)] = flat[index].to(wide)
        if self.flat.sharded:
            torch.distributed.all_reduce(sums[1])
        found: NDArray[numpy.float64] = sums.sum(0).double().cpu().numpy()
        return self.directions.products(found)

    def _likelihood(self, seen: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
        if self.noise_multiplier is None:
            return seen
        exponent: NDArray[numpy.float64] = (seen - 0.5) / self.noise_multiplier**2
        if self.sample_rate >= 1.0:
            return exponent
        rate = self.sample_rate
        found: NDArray[numpy.float64] = numpy.logaddexp(
            math.log1p(-rate), math.log(rate) + exponent
        )
        return found

    def scores(self) -> NDArray[numpy.float64]:
        """One score for each canary, larger for those that are in."""
        if self._start is None:
            seen: NDArray[numpy.float64] = numpy.array(self._evidence)
            return seen
        moved = self.products(self.flat.values()) - self._start
        found: NDArray[numpy.float64] = numpy.multiply(self.flat.sign, moved)
        return found

    def audit(self, **options: Any) -> Audit:
        """Audits the scores as canaries of one training; the keywords of
        :func:`dosimeter.audit`."""
        if not self._fair:
            raise InvalidInput("canaries of one training need coins: leave `member` out")
        found = self.scores()
        options = {"design": "one-run"} | options
        return audit(
            members=found[self.included], nonmembers=found[~self.included], **options
        )

    def state_dict(self) -> Document:
        """What a checkpoint needs; coins and directions come from the seed."""
        return {
            "steps": self.steps,
            "sampled": self.sampled.tolist(),
            "evidence": self._evidence.tolist(),
            "start": None if self._start is None else self._start.tolist(),
        }

    def load_state_dict(self, state: Document) -> None:
        """Goes on where a checkpoint ended."""
        self.steps = int(state["steps"])
        self.sampled = numpy.asarray(state["sampled"], dtype=numpy.int64)
        self._evidence = numpy.asarray(state["evidence"], dtype=numpy.float64)
        start = state["start"]
        self._start = None if start is None else numpy.asarray(start, dtype=numpy.float64)


def _write(piece: Piece, flat: Any) -> None:
    """Puts a changed gradient back where flattening had to copy it."""
    gradient = _local(piece.parameter.grad)
    if flat.data_ptr() != gradient.data_ptr():
        with torch.no_grad():
            gradient.copy_(flat.view(gradient.shape))
