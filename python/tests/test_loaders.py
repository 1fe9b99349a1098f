"""How data loaders draw batches, with stand-ins for the classes of PyTorch: what a record's uses are
counted as is never less than what is drawn."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import dosimeter
from dosimeter._torch_loaders import accounted, sampler_batches


def torch_like(kind: type) -> type:
    """A class that says it is one of PyTorch's."""
    kind.__module__ = "torch.utils.data.sampler"
    return kind


@torch_like
class RandomSampler:
    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int = 0) -> None:
        self.data_source, self.replacement = data_source, replacement
        self.num_samples = num_samples or len(data_source)

    def __len__(self) -> int:
        return self.num_samples

    def __iter__(self) -> Iterator[int]:
        records = list(range(len(self.data_source)))
        return iter(random.sample(records, self.num_samples))


@torch_like
class SequentialSampler:
    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __len__(self) -> int:
        return len(self.data_source)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))


@torch_like
class SubsetRandomSampler:
    def __init__(self, indices: Sequence[int]) -> None:
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        return iter(random.sample(list(self.indices), len(self.indices)))


@torch_like
class BatchSampler:
    def __init__(self, sampler: Any, batch_size: int, drop_last: bool = False) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __len__(self) -> int:
        count = len(self.sampler) / self.batch_size
        return math.floor(count) if self.drop_last else math.ceil(count)

    def __iter__(self) -> Iterator[list[int]]:
        order = list(self.sampler)
        for index in range(len(self)):
            yield order[index * self.batch_size : (index + 1) * self.batch_size]


class Loader:
    def __init__(self, sampler: Any, batch_size: int, drop_last: bool = False) -> None:
        self.batch_sampler = BatchSampler(sampler, batch_size, drop_last)

    def __len__(self) -> int:
        return len(self.batch_sampler)


RECORDS = range(1000)


def run_of(loader: Loader, noise: float, steps: int) -> dosimeter.Run:
    """What the accountant makes of a training with this loader."""
    batches = sampler_batches(loader)
    phases = [
        dosimeter.Phase(noise_multiplier=s, sample_rate=q, steps=t)
        for s, q, t in accounted([(noise, 1 / len(loader), steps)], batches)
    ]
    keys = {k: v for k, v in batches.items() if k not in ("rate_scale", "drawn_share")}
    return dosimeter.Run(adjacency="zero-out", phases=phases, **keys)


def claim(run: dosimeter.Run, delta: float = 1e-5) -> dosimeter.Claim:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Poisson analysis would report")
        return dosimeter.account(run, delta=delta, lens="composition", quantity="epsilon")[0]


def gaussian(noise: float, uses: int) -> float:
    """Epsilon of this many certain uses."""
    full = dosimeter.Run(noise_multiplier=noise, sampling="full", steps=uses)
    return claim(full).value


def test_a_subset_has_shorter_epochs() -> None:
    """500 of 1,000 records, batches of 50: 100 steps are ten epochs and not five."""
    loader = Loader(SubsetRandomSampler(range(500)), 50)
    run = run_of(loader, 2.0, 100)
    assert run.phases[0].sample_rate == pytest.approx(0.1) and run.dataset_size == 500
    assert claim(run).upper == pytest.approx(gaussian(2.0, 10), rel=1e-9)
    assert claim(run).upper == pytest.approx(7.511, abs=1e-3)


def test_epochs_of_some_of_the_records() -> None:
    """Other 500 records in every epoch: a record may be in each of them, and is in half on average."""
    loader = Loader(RandomSampler(RECORDS, num_samples=500), 50)
    run = run_of(loader, 2.0, 100)
    assert run.dataset_size is None
    found = claim(run)
    assert found.upper == pytest.approx(gaussian(2.0, 10), rel=1e-9)
    # A record that is in every epoch is what the lower end is about.
    assert found.at_least is None
    # The first epoch is the first half of a shuffle of all records.
    half = run_of(loader, 2.0, 10)
    whole = run_of(Loader(RandomSampler(RECORDS), 50), 2.0, 10)
    assert claim(half).upper == pytest.approx(claim(whole).upper, rel=1e-12)
    assert claim(half).upper < gaussian(2.0, 1)


def test_the_order_of_the_data_set_counts_whole_epochs() -> None:
    """The first records are in the last part of an epoch for certain."""
    loader = Loader(SequentialSampler(RECORDS), 10)
    run = run_of(loader, 2.0, 350)
    assert run.sampling == "in-order"
    assert claim(run).upper == pytest.approx(gaussian(2.0, 4), rel=1e-9)
    assert claim(run).upper == pytest.approx(4.3772, abs=1e-4)
    # A short last batch is a batch: 32 steps of 16 batches are two epochs.
    assert claim(run_of(Loader(SequentialSampler(RECORDS), 64), 2.0, 32)).upper == pytest.approx(
        gaussian(2.0, 2), rel=1e-9
    )


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(
    "sampler",
    [
        RandomSampler(range(50)),
        RandomSampler(range(50), num_samples=20),
        SequentialSampler(range(50)),
        SubsetRandomSampler(range(10, 37)),
    ],
)
def test_no_record_is_used_more_often_than_counted(sampler: Any, drop_last: bool) -> None:
    loader = Loader(sampler, 7, drop_last)
    random.seed(4)
    drawn: list[list[int]] = []
    while len(drawn) < 60:
        drawn += list(loader.batch_sampler)
    for steps in (1, len(loader), len(loader) + 1, 23, 60):
        uses = [0] * 50
        for record in [one for batch in drawn[:steps] for one in batch]:
            uses[record] += 1
        run = run_of(loader, 3.0, steps)
        epochs = sum(
            math.ceil(phase.steps / math.floor(1 / phase.sample_rate + 1e-9)) for phase in run.phases
        )
        assert max(uses) <= epochs, (steps, run)


def test_what_is_not_known_is_said() -> None:
    class WeightedRandomSampler(SequentialSampler):
        pass

    class RepeatAugmented(SubsetRandomSampler):
        pass

    own = torch_like(WeightedRandomSampler)
    for sampler in (
        own(RECORDS),
        RepeatAugmented(range(10)),
        RandomSampler(range(100), num_samples=150),
        SubsetRandomSampler([1, 1, 2]),
    ):
        assert "not known" in sampler_batches(Loader(sampler, 5))["problem"]
    loader = Loader(SequentialSampler(RECORDS), 5)
    loader.batch_sampler = [[1, 2], [2, 3]]
    assert "list are not known" in sampler_batches(loader)["problem"]
    assert "no batch" in sampler_batches(Loader(SubsetRandomSampler([]), 5))["problem"]


def test_batches_come_from_the_sampler_of_batches() -> None:
    """Beside a sampler of batches, PyTorch's loader keeps a sequential sampler that draws nothing."""
    loader = Loader(SubsetRandomSampler(range(500)), 50)
    loader.sampler = SequentialSampler(RECORDS)
    assert sampler_batches(loader)["permutation"] == "fresh"
    drawn = Loader(RandomSampler(RECORDS, replacement=True, num_samples=500), 50)
    drawn.sampler = SequentialSampler(RECORDS)
    found = sampler_batches(drawn)
    assert (found["sampling"], found["replacement"]) == ("fixed-size", True)
    assert found["rate_scale"] / len(drawn) == pytest.approx(50 / 1000)
