"""How a data loader draws batches, by its sampler or by what was drawn, and the phases of a run to account for.
Needs no torch: samplers are known by the name of their class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

#: Noise multiplier, sample rate, steps.
Entry = tuple[float, float, int]


def _kind(thing: Any) -> str:
    """The name of a class of ``torch.utils.data`` itself; of a subclass or another class, nothing."""
    found = type(thing)
    known = found.__module__.startswith("torch.utils.data")
    return found.__name__ if known else ""


def drawn_in_passes(*, even: bool, ordered: bool) -> str:
    """The way of batches that together hold every record once: of even sizes or not, in order or not."""
    if not even:
        return "balls-and-bins"
    return "in-order" if ordered else "shuffle"


def sampler_batches(loader: Any) -> dict[str, Any]:
    """What :func:`dosimeter.opacus.loader_batches` says about a loader that is not one of Opacus.

    An epoch has as many draws as the sampler has, which may be fewer than the data set has records.
    """
    batches: Any = getattr(loader, "batch_sampler", None)
    if _kind(batches) != "BatchSampler":
        return {"problem": f"batches of a {type(batches).__name__} are not known"}
    # With a sampler of batches, the loader's own sampler is a default that nothing is drawn from.
    sampler: Any = batches.sampler
    kind = _kind(sampler)
    unknown = {"problem": f"the draws of a {type(sampler).__name__} are not known"}
    if kind not in ("RandomSampler", "SequentialSampler", "SubsetRandomSampler"):
        return unknown
    try:
        drawn, steps = len(sampler), len(loader)
        records = drawn if kind == "SubsetRandomSampler" else len(sampler.data_source)
    except TypeError:
        return {"problem": "its data set has no length"}
    if not drawn or not steps:
        return {"problem": "it draws no batch"}
    size = min(int(batches.batch_size), drawn)
    if kind == "RandomSampler" and sampler.replacement:
        return {
            "sampling": "fixed-size", "replacement": True, "dataset_size": records,
            "rate_scale": size * steps / records,
        }
    repeated = kind == "SubsetRandomSampler" and len(set(sampler.indices)) < drawn
    if drawn > records or repeated:
        return unknown
    if kind == "SequentialSampler":
        # Record i is in the same batch of every epoch: once in as many steps as the loader has.
        return {"sampling": "in-order", "dataset_size": records, "rate_scale": 1.0}
    found: dict[str, Any] = {"sampling": "shuffle", "permutation": "fresh"}
    found["rate_scale"] = size * steps / drawn
    if drawn < records:
        # Other records in every epoch: the size of the data set is not that of an epoch.
        return found | {"drawn_share": drawn / records}
    return found | {"dataset_size": records}


def accounted(history: Iterable[Entry], batches: Mapping[str, Any]) -> list[Entry]:
    """The phases to account for: rates of records in place of Opacus' one over the number of batches.

    States of version 0.2 call the order of the data set a shuffle that is kept. Its first records are in
    every part of an epoch for certain, so a part counts as a whole epoch.

    Where an epoch holds only some of the records, at most one use per epoch is counted, as if it held all.
    The proven lower end would not hold then. None is given for several phases, so the first epoch is one
    of its own; the first epoch alone is exactly a part of a shuffle of all records.
    """
    scale, share = batches.get("rate_scale", 1.0), batches.get("drawn_share")
    entries = [(noise, min(1.0, rate * scale), steps) for noise, rate, steps in history]
    if batches.get("permutation") == "kept":
        return [
            (noise, rate, -(-steps // _batches(rate)) * _batches(rate))
            for noise, rate, steps in entries
        ]
    if share is not None and len(entries) == 1:
        noise, rate, steps = entries[0]
        epoch = _batches(rate)
        if steps <= epoch:
            return [(noise, rate * share, steps)]
        return [(noise, rate, epoch), (noise, rate, steps - epoch)]
    return entries


def _batches(rate: float) -> int:
    """Batches per epoch: 1/rate, rounded down where it is not whole."""
    near = round(1 / rate)
    whole = abs(1 / rate - near) <= 1e-9 * near
    return max(1, near if whole else math.floor(1 / rate))
