"""An Opacus training on the CPU with our accountant in place of theirs, from end to end."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

import dosimeter  # noqa: E402
import dosimeter.opacus as bridge  # noqa: E402

pytestmark = pytest.mark.bridge

# Two threads on tiny tensors wait for each other more than they compute.
torch.set_num_threads(1)

RECORDS, BATCH, WIDTH = 1024, 64, 8


def records(count: int = RECORDS) -> Any:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(count, WIDTH, generator=generator)
    labels = (inputs.sum(dim=1) > 0).long()
    return torch.utils.data.TensorDataset(inputs, labels)


def private(dataset: Any, accountant: str = "dosimeter", **options: Any) -> tuple[Any, ...]:
    torch.manual_seed(1)
    model = torch.nn.Linear(WIDTH, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Secure RNG turned off")
        engine = opacus.PrivacyEngine(accountant=accountant)
    made = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        **options,
    )
    return (engine, *made)


def train(model: Any, optimizer: Any, loader: Any, epochs: int) -> int:
    steps = 0
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            steps += 1
    return steps


def test_a_training_with_our_accountant() -> None:
    engine, model, optimizer, loader = private(records())
    recorder = bridge.Recorder(optimizer)
    steps = train(model, optimizer, loader, epochs=3)
    accountant = engine.accountant
    assert isinstance(accountant, bridge.Accountant) and accountant.poisson is True
    assert len(accountant) == steps == len(recorder.batch_sizes) == 48
    run = dosimeter.Run(noise_multiplier=1.0, sample_rate=1 / 16, steps=48)
    ours = dosimeter.account(run, delta=1e-5, lens="composition")[0].upper
    assert engine.get_epsilon(delta=1e-5) == ours
    # Theirs, on the same history, is above: theirs rounds up or is looser.
    for mechanism in ("rdp", "prv"):
        other = opacus.accountants.create_accountant(mechanism)
        other.load_state_dict(accountant.export_state_dict(mechanism))
        assert ours <= other.get_epsilon(delta=1e-5) * (1 + 1e-3)
    claims = accountant.account(delta=1e-5)
    assert {"composition", "last-iterate"} <= {claim.lens for claim in claims}
    assert recorder.run(sample_rate=1 / 16) == accountant.run()
    assert recorder.check_sampling(dataset_size=RECORDS, sample_rate=1 / 16) is None


def test_the_state_is_resumed_and_exchanged() -> None:
    engine, model, optimizer, loader = private(records())
    train(model, optimizer, loader, epochs=1)
    state = copy.deepcopy(engine.accountant.state_dict())
    again = bridge.Accountant()
    again.load_state_dict(state)
    assert again.history == engine.accountant.history and again.poisson is True
    theirs = opacus.accountants.RDPAccountant()
    theirs.history = [(1.0, 0.01, 500), (2.0, 0.01, 500)]
    again.load_state_dict(theirs.state_dict())
    assert len(again) == 1000
    assert again.get_epsilon(1e-5) < theirs.get_epsilon(1e-5)
    with pytest.raises(ValueError, match="no `history`"):
        again.load_state_dict({"mechanism": "rdp"})


def test_batches_that_are_not_poisson_are_warned_about() -> None:
    with pytest.warns(dosimeter.DosimeterWarning, match="does not draw Poisson"):
        engine, model, optimizer, loader = private(records(), poisson_sampling=False)
    recorder = bridge.Recorder(optimizer)
    train(model, optimizer, loader, epochs=6)
    # Six epochs: six Gaussian mechanisms, and not the epsilon of Poisson batches.
    with pytest.warns(dosimeter.DosimeterWarning, match="without amplification"):
        told = engine.get_epsilon(delta=1e-5)
    six = dosimeter.Run(noise_multiplier=1.0, sampling="full", steps=6)
    full = dosimeter.account(six, delta=1e-5, lens="composition")[0].upper
    assert told == pytest.approx(full, rel=1e-12)
    poisson = dosimeter.Run(noise_multiplier=1.0, sample_rate=1 / 16, steps=96)
    assert told > 2 * dosimeter.account(poisson, delta=1e-5, lens="composition")[0].upper
    run = engine.accountant.run()
    assert (run.sampling, run.adjacency) == ("in-order", "zero-out")
    assert run.phases[0].sample_rate == 1 / 16 and run.dataset_size == RECORDS
    suspicion = recorder.check_sampling(dataset_size=RECORDS, sample_rate=1 / 16)
    assert suspicion is not None and "not Poisson" in suspicion
    assert not bridge.is_poisson(torch.utils.data.DataLoader(records(), batch_size=4))


def test_loaders_are_recognised() -> None:
    data = torch.utils.data
    dataset = records(1000)

    def found(**options: Any) -> dict[str, Any]:
        return bridge.loader_batches(data.DataLoader(dataset, **options))

    shuffled = found(batch_size=64, shuffle=True)
    assert shuffled["sampling"] == "shuffle" and shuffled.get("permutation", "fresh") == "fresh"
    # Sixteen batches, the last one short: a record is in a given whole one with 64/1000.
    assert shuffled["rate_scale"] / 16 == pytest.approx(64 / 1000)
    assert found(batch_size=50)["sampling"] == "in-order"
    drawn = data.RandomSampler(dataset, replacement=True, num_samples=500)
    again = found(batch_size=50, sampler=drawn)
    assert (again["sampling"], again["replacement"]) == ("fixed-size", True)
    for sampler in (
        data.WeightedRandomSampler([1.0] * 1000, 1000),
        data.RandomSampler(dataset, num_samples=1500),
        # Each of these hundred records five times per epoch.
        data.RandomSampler(range(100), num_samples=500),
        data.SubsetRandomSampler([1, 1, 2]),
    ):
        assert "not known" in found(batch_size=50, sampler=sampler)["problem"]
        # Beside a sampler of batches, a loader keeps a sampler that nothing is drawn from.
        batches = data.BatchSampler(sampler, 50, drop_last=False)
        assert "not known" in found(batch_sampler=batches)["problem"]
    own = data.DataLoader(dataset, batch_sampler=[[1, 2], [2, 3]])
    assert "not known" in bridge.loader_batches(own)["problem"]


def test_an_epoch_is_what_the_sampler_draws() -> None:
    """Half of the records, and the order of the data set: ten and four certain uses."""
    data = torch.utils.data
    dataset = records(1000)

    def epsilon(steps: int, **options: Any) -> float:
        loader = data.DataLoader(dataset, **options)
        accountant = bridge.Accountant.from_history([(2.0, 1 / len(loader), steps)])
        accountant.batches = bridge.loader_batches(loader)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dosimeter.DosimeterWarning)
            return accountant.get_epsilon(1e-5)

    def certain(uses: int) -> float:
        run = dosimeter.Run(noise_multiplier=2.0, sampling="full", steps=uses)
        return dosimeter.account(run, delta=1e-5, lens="composition")[0].value

    for sampler in (
        data.SubsetRandomSampler(range(500)),
        data.RandomSampler(dataset, num_samples=500),
    ):
        assert epsilon(100, batch_size=50, sampler=sampler) == pytest.approx(certain(10), rel=1e-9)
    assert epsilon(350, batch_size=10) == pytest.approx(certain(4), rel=1e-9)
    # In a random order the last half of an epoch holds a record with probability 1/2.
    assert epsilon(350, batch_size=10, shuffle=True) < certain(4)


def test_what_a_loader_draws_is_what_is_claimed() -> None:
    """A shuffled loader with a short last batch, and draws with replacement."""
    accountant = bridge.Accountant.from_history([(2.0, 1 / 16, 32)])
    accountant.batches = {
        "sampling": "shuffle", "permutation": "fresh", "dataset_size": 1000,
        "rate_scale": 64 * 16 / 1000,
    }
    with pytest.warns(dosimeter.DosimeterWarning, match="shuffle"):
        told = accountant.get_epsilon(1e-5)
    # Two epochs of sixteen batches: two uses, and a third at most.
    for uses, sign in ((2, 1), (3, -1)):
        run = dosimeter.Run(noise_multiplier=2.0, sampling="full", steps=uses)
        exact = dosimeter.account(run, delta=1e-5, lens="composition")[0].value
        assert sign * (told - exact) >= 0
    accountant.history = [(4.0, 1 / 16, 320)]
    accountant.batches = {
        "sampling": "fixed-size", "replacement": True, "dataset_size": 1000,
        "rate_scale": 64 * 16 / 1000,
    }
    with pytest.warns(dosimeter.DosimeterWarning, match="fixed-size"):
        told = accountant.get_epsilon(1e-5)
    run = dosimeter.Run(
        noise_multiplier=4.0, dataset_size=1000, batch_size=64, steps=320, sampling="fixed-size",
        replacement=True,
    )
    assert told == dosimeter.account(run, delta=1e-5, lens="composition")[0].upper
    # What is not known has no finite number.
    accountant.batches = {"problem": "the draws of a Sampler are not known"}
    with pytest.warns(dosimeter.DosimeterWarning, match="not known"):
        assert accountant.get_epsilon(1e-5) == float("inf")
    # A state of version 0.1.
    old = bridge.Accountant.from_history([(2.0, 1 / 16, 32)])
    old.load_state_dict({"history": [(2.0, 1 / 16, 32)], "mechanism": "dosimeter", "poisson": False})
    assert old.run().sampling == "shuffle" and old.poisson is False


def test_what_is_really_drawn_is_counted() -> None:
    dataset = records()
    _, model, optimizer, loader = private(dataset)
    recorder = bridge.Recorder(optimizer, loader=loader)
    assert bridge.is_poisson(loader)
    train(model, optimizer, loader, epochs=6)
    assert recorder.inclusions is not None and recorder.drawn == recorder.batch_sizes
    assert len(recorder.drawn) == 96
    assert recorder.inclusions.sum() == sum(recorder.batch_sizes)
    assert recorder.check_sampling(dataset_size=RECORDS, sample_rate=1 / 16) is None

    # Batches of random sizes, but cut from a shuffled data set: every record once per epoch.
    class Cut(torch.utils.data.Sampler):  # type: ignore[misc]
        def __iter__(self) -> Any:
            order = torch.randperm(RECORDS).tolist()
            sizes = torch.distributions.Binomial(RECORDS, 1 / 16).sample((15,)).long().tolist()
            for size in sizes:
                yield order[:size]
                order = order[size:]
            yield order

        def __len__(self) -> int:
            return 16

    cut = torch.utils.data.DataLoader(dataset, batch_sampler=Cut())
    torch.manual_seed(1)
    _, model, optimizer, _ = private(dataset)
    recorder = bridge.Recorder(optimizer, loader=cut)
    train(model, optimizer, cut, epochs=6)
    suspicion = recorder.check_sampling(dataset_size=RECORDS, sample_rate=1 / 16)
    assert suspicion is not None and "a record is in" in suspicion, suspicion


def test_batches_in_parts_are_counted_whole() -> None:
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    engine, model, optimizer, loader = private(records())
    recorder = bridge.Recorder(optimizer, loader=loader)
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=25, optimizer=optimizer
    ) as parts:
        train(model, optimizer, parts, epochs=2)
    assert len(engine.accountant) == len(recorder.batch_sizes) == 32
    assert recorder.batch_sizes == recorder.drawn and max(recorder.batch_sizes) > 50
    assert recorder.check_sampling(dataset_size=RECORDS, sample_rate=1 / 16) is None


def test_canaries_are_scored_along_the_way() -> None:
    generator = torch.Generator().manual_seed(5)
    examples = [
        (torch.randn(WIDTH, generator=generator), torch.tensor(i % 2)) for i in range(40)
    ]
    canaries = bridge.Canaries(examples, seed=3)
    _, model, optimizer, loader = private(canaries.inserted_into(records(256)))
    recorder = bridge.Recorder(optimizer, model=model, canaries=canaries, every=3)
    steps = train(model, optimizer, loader, epochs=2)
    last = recorder.observe(model)
    at = [step for step, _ in recorder.observations]
    assert at == [*range(0, steps, 3), steps] and model.training
    assert all(len(scores) == 40 for _, scores in recorder.observations)
    assert (recorder.observations[0][1] != last).any()
    with pytest.raises(dosimeter.InvalidInput, match="every"):
        bridge.Recorder(optimizer, every=3)


def test_canaries_are_scored_in_batches_on_the_models_device() -> None:
    generator = torch.Generator().manual_seed(5)
    examples = [(torch.randn(WIDTH, generator=generator), torch.tensor(i % 2)) for i in range(50)]
    model = torch.nn.Linear(WIDTH, 2)
    seen: list[Any] = []
    model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    scores = bridge.negative_loss(model, examples, batch_size=20)
    assert [len(part) for part in seen] == [20, 20, 10] and len(scores) == 50
    assert bridge.negative_loss(model, examples) == pytest.approx(scores, rel=1e-5)
    # Batches go where the parameters are, whatever that device is called.
    moved: list[Any] = []
    elsewhere = torch.nn.Linear(WIDTH, 2, device="meta")
    elsewhere.register_forward_pre_hook(lambda _, inputs: moved.append(inputs[0].device.type))
    with pytest.raises(Exception):  # noqa: B017, PT011 - there are no numbers on that device
        bridge.negative_loss(elsewhere, examples)
    assert moved[0] == "meta"


def test_make_private_with_epsilon_uses_our_numbers() -> None:
    torch.manual_seed(1)
    model = torch.nn.Linear(WIDTH, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = torch.utils.data.DataLoader(records(), batch_size=BATCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = opacus.PrivacyEngine(accountant="dosimeter")
        _, optimizer, _ = engine.make_private_with_epsilon(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            target_epsilon=2.0,
            target_delta=1e-5,
            epochs=3,
            max_grad_norm=1.0,
        )
    exact = dosimeter.calibrate(
        "noise_multiplier", target_epsilon=2.0, delta=1e-5, sample_rate=1 / 16, steps=48
    ).solution
    # Opacus stops its search within 0.01 of the target, on the safe side.
    assert exact <= optimizer.noise_multiplier <= exact * 1.02


def test_canaries_in_one_run_are_audited() -> None:
    generator = torch.Generator().manual_seed(5)
    inputs = 3 * torch.randn(200, WIDTH, generator=generator)
    labels = torch.randint(0, 2, (200,), generator=generator)
    canaries = bridge.Canaries(torch.utils.data.TensorDataset(inputs, labels), seed=3)
    assert 60 < canaries.included.sum() < 140
    dataset = canaries.inserted_into(records(256))
    assert len(dataset) == 256 + canaries.included.sum()
    engine, model, optimizer, loader = private(dataset)
    recorder = bridge.Recorder(optimizer, canaries=canaries)
    with pytest.raises(dosimeter.InvalidInput, match="observe"):
        recorder.audit()
    train(model, optimizer, loader, epochs=4)
    scores = recorder.observe(model)
    assert len(scores) == 200 and (scores <= 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dosimeter.DosimeterWarning)
        answer = recorder.audit(delta=1e-5, claim=engine.accountant.run())
    assert answer.design == "one-run" and answer.primary.method == "one-run"
    assert answer.verdict is not None and answer.verdict.status != "contradiction"


def test_a_refusal_is_infinite_and_said() -> None:
    accountant = bridge.Accountant.from_history([(0.01, 0.5, 10)])
    with pytest.warns(dosimeter.DosimeterWarning, match="no finite epsilon"):
        assert accountant.get_epsilon(delta=1e-5) == float("inf")
    assert bridge.Accountant().get_epsilon(delta=1e-5) == 0.0


def test_adaptive_clipping_before_1_6_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its accountants were told the noise of the gradients alone, which is too much."""

    class AdaClipDPOptimizer:
        noise_multiplier = 1.0
        accumulated_iterations = 1

    hook = bridge.Accountant().get_optimizer_hook_fn(sample_rate=0.1)
    monkeypatch.setattr(bridge, "version", lambda _: "1.5.4")
    with pytest.raises(dosimeter.Unsupported, match=r"before 1\.6"):
        hook(AdaClipDPOptimizer())
    accountant = bridge.Accountant()
    monkeypatch.setattr(bridge, "version", lambda _: "1.10.0")
    accountant.get_optimizer_hook_fn(sample_rate=0.1)(AdaClipDPOptimizer())
    assert accountant.history == [(1.0, 0.1, 1)]
