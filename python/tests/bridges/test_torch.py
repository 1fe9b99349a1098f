"""Any PyTorch loop: gradient canaries, record canaries, and the recorder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")

import dosimeter  # noqa: E402
from dosimeter.torch import Canaries, GradientCanary, Recorder, cross_entropy  # noqa: E402

pytestmark = pytest.mark.bridge
torch.set_num_threads(1)

COUNT = 7


def optimizer_of(*shapes: tuple[int, ...], rate: float = 1.0, **options: Any) -> tuple[list[Any], Any]:
    parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    return parameters, torch.optim.SGD(parameters, lr=rate, **options)


def options(**changes: Any) -> dict[str, Any]:
    return {"clip_norm": 2.0, "sample_rate": 1.0, "divisor": 4.0, "count": COUNT, "seed": 5} | changes


@pytest.mark.parametrize("kind", ["signs", "blocks", "coordinates"])
@pytest.mark.parametrize("observe", ["last", "all"])
def test_what_is_inserted_is_what_is_scored(kind: str, observe: str) -> None:
    parameters, optimizer = optimizer_of((10, 50), (503,), (3, 4, 5, 5))
    parameters[2].data = parameters[2].data.to(memory_format=torch.channels_last)
    before = [parameter.detach().clone() for parameter in parameters]
    canary = GradientCanary(optimizer, direction=kind, observe=observe, **options())
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    moved = torch.cat([(b - p.detach()).reshape(-1) for b, p in zip(before, parameters, strict=True)])
    dense = numpy.stack([canary.directions.dense(j) for j in range(COUNT)])
    # Against the written-out directions: sum of those that are in, times clip norm over divisor.
    assert numpy.abs(moved.numpy() - 0.5 * canary.included @ dense).max() < 1e-6
    unit = 0.5 if observe == "last" else 1.0
    assert numpy.allclose(canary.scores(), unit * canary.included, atol=1e-5)
    assert 0 < canary.included.sum() < COUNT or kind


def test_canaries_are_sampled_as_records_are() -> None:
    _, optimizer = optimizer_of((4000,))
    canary = GradientCanary(optimizer, **options(count=1000, sample_rate=0.1))
    for _ in range(50):
        optimizer.step()
    drawn = canary.sampled[canary.included]
    assert (canary.sampled[~canary.included] == 0).all()
    assert abs(drawn.mean() - 5.0) < 5 * (4.5 / len(drawn)) ** 0.5
    assert abs(drawn.var() / 4.5 - 1.0) < 0.3


def test_a_given_vector_and_a_maximising_optimizer() -> None:
    parameters, optimizer = optimizer_of((3,), (2,), maximize=True)
    vector = [torch.tensor([3.0, 0.0, 0.0]), torch.tensor([0.0, 4.0])]
    canary = GradientCanary(
        optimizer, direction=vector, **options(count=1, member=True, clip_norm=1.0)
    )
    before = [parameter.detach().clone() for parameter in parameters]
    optimizer.step()
    assert torch.allclose(parameters[0] - before[0], torch.tensor([0.15, 0.0, 0.0]), atol=1e-6)
    assert canary.scores() == pytest.approx([0.25], abs=1e-6)
    with pytest.raises(dosimeter.InvalidInput, match="coins"):
        canary.audit()


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)

    def forward(self, inputs: Any) -> Any:
        return self.second(torch.tanh(self.first(inputs)))


RECORDS, BATCH, STEPS = 400, 40, 30
RUN = dosimeter.Run(noise_multiplier=1.0, dataset_size=RECORDS, batch_size=BATCH, steps=STEPS)


def data() -> Any:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(RECORDS, 8, generator=generator)
    return torch.utils.data.TensorDataset(inputs, (inputs.sum(1) > 0).long())


class Coins(torch.utils.data.Sampler):  # type: ignore[misc]
    def __init__(self, seed: int) -> None:
        self.generator = numpy.random.default_rng(seed)

    def __iter__(self) -> Any:
        for _ in range(STEPS):
            yield numpy.flatnonzero(self.generator.random(RECORDS) < BATCH / RECORDS).tolist()

    def __len__(self) -> int:
        return STEPS


def private_step(
    model: Any, batch: Any, parameters: Any, *, noise: float = 1.0, factor: float = 1.0,
    loss: Any = cross_entropy, generator: Any = None,
) -> None:
    total = [torch.zeros_like(parameter) for parameter in parameters]
    for index in range(len(batch[0])):
        one = tuple(part[index : index + 1] for part in batch)
        gradient = torch.autograd.grad(loss(model, one).sum(), parameters)
        norm = float(sum(piece.pow(2).sum() for piece in gradient)) ** 0.5
        for sofar, piece in zip(total, gradient, strict=True):
            sofar += piece * min(1.0, 1.0 / norm)
    for parameter, sofar in zip(parameters, total, strict=True):
        drawn = torch.randn(sofar.shape, generator=generator).to(sofar)
        added = (factor * sofar + noise * drawn) / BATCH
        parameter.grad = added if parameter.grad is None else parameter.grad + added


def train(recorder: Any, model: Any, optimizer: Any, seed: int = 0, **mistake: Any) -> None:
    loader = torch.utils.data.DataLoader(data(), batch_sampler=Coins(seed), num_workers=0)
    torch.manual_seed(seed)
    for batch in recorder.watch(loader):
        optimizer.zero_grad()
        private_step(model, batch, list(model.parameters()), **mistake)
        optimizer.step()


def made(**keywords: Any) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = Recorder(model, optimizer, claim=RUN, loss=cross_entropy, every=3, **keywords)
    return recorder, model, optimizer


def test_a_healthy_loop_and_two_mistakes() -> None:
    recorder, model, optimizer = made()
    train(recorder, model, optimizer)
    assert not recorder.accused and recorder.run() == RUN, recorder
    assert recorder.recording.noise_multiplier == pytest.approx(1.0, rel=0.05)
    for mistake, test in (({"noise": 0.5}, "noise"), ({"factor": 2.0}, "sum")):
        recorder, model, optimizer = made()
        train(recorder, model, optimizer, **mistake)
        assert test in {finding.test for finding in recorder.findings() if finding.accused}


def test_both_ways_to_the_clipped_sum_agree() -> None:
    """vmap over many records, and one record at a time where memory is short."""
    found = []
    for memory in (1 << 28, 1):
        recorder, model, optimizer = made(memory=memory)
        train(recorder, model, optimizer)
        found.append(recorder.recording.checks)
    for one, other in zip(*found, strict=True):
        assert one.signal == pytest.approx(other.signal, rel=1e-4)
        assert one.energy == pytest.approx(other.energy, rel=1e-4)


def test_a_checkpoint_carries_the_recording(tmp_path: Path) -> None:
    def session() -> tuple[Any, Any, Any]:
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        canaries = GradientCanary(
            optimizer, clip_norm=1.0, sample_rate=0.1, divisor=BATCH, count=20, seed=2
        )
        return model, optimizer, Recorder(
            model, optimizer, claim=RUN, loss=cross_entropy, every=10, canaries=canaries
        )

    model, optimizer, recorder = session()
    train(recorder, model, optimizer)
    torch.save({"m": model.state_dict(), "o": optimizer.state_dict()}, tmp_path / "checkpoint")
    state = torch.load(tmp_path / "checkpoint", weights_only=True)
    again, second, resumed = session()
    again.load_state_dict(state["m"])
    second.load_state_dict(state["o"])
    assert resumed.recording.steps == STEPS
    assert numpy.allclose(resumed.canaries.scores(), recorder.canaries.scores())
    train(resumed, again, second, seed=1)
    assert any(f.test == "steps" and f.accused for f in resumed.findings())
    assert (resumed.canaries.sampled.sum() > recorder.canaries.sampled.sum()).all()


#: The default backend of torch.compile writes C++.
BACKENDS = [
    "eager",
    pytest.param(
        "inductor",
        marks=pytest.mark.skipif(
            not any(map(shutil.which, ("g++", "clang++"))), reason="no C++ compiler"
        ),
    ),
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_models_and_accumulation(backend: str) -> None:
    torch.manual_seed(0)
    model = Net()
    compiled = torch.compile(model, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = Recorder(compiled, optimizer, claim=RUN, loss=cross_entropy, every=1)
    loader = torch.utils.data.DataLoader(data(), batch_sampler=Coins(0))
    halves = 0
    for batch in recorder.watch(loader):
        # Two halves with a gradient each, one step.
        optimizer.zero_grad()
        middle = len(batch[0]) // 2
        for part in (slice(0, middle), slice(middle, None)):
            private_step(compiled, tuple(x[part] for x in batch), list(model.parameters()),
                         noise=0.5**0.5)
            halves += 1
        optimizer.step()
    assert halves == 2 * STEPS and recorder.recording.steps == STEPS
    assert not recorder.accused, recorder
    # Parts that are told one by one are one step's records.
    recorder, model, optimizer = made()
    for part in (slice(0, 30), slice(30, 70)):
        recorder.batch(tuple(x[part] for x in data().tensors))
    assert recorder._size == 70


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_a_compiled_step_is_seen_like_any_other(kind: Any, backend: str) -> None:
    torch._dynamo.reset()
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = Net()
        optimizer = kind(model.parameters(), lr=0.1)
        canary = GradientCanary(optimizer, **options(sample_rate=0.5, divisor=BATCH, observe="all", seed=1))
        recorder = Recorder(
            model, optimizer, claim=RUN, loss=cross_entropy, every=3, canaries=canary
        )
        if compiled:
            optimizer.step = torch.compile(optimizer.step, backend=backend)
        train(recorder, model, optimizer)
        assert not recorder.accused and recorder.run() == RUN, recorder
        found.append((recorder.recording.checks, canary))
    (checks, canary), (again, other) = found
    assert len(checks) == len(again) == STEPS / 3 and canary.steps == other.steps == STEPS
    for one, two in zip(checks, again, strict=True):
        assert one.energy == pytest.approx(two.energy, rel=1e-3)
    assert (canary.sampled == other.sampled).all() and canary.sampled.sum() > STEPS, canary.sampled
    assert numpy.allclose(canary.scores(), other.scores(), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("watcher", ["canary", "recorder"])
def test_one_graph_of_a_whole_step_is_refused_by_name(watcher: str) -> None:
    # A step that another test compiled in parts would be run as it was.
    torch._dynamo.reset()
    recorder, _, optimizer = made()
    if watcher == "canary":
        recorder.detach()
        GradientCanary(optimizer, **options(count=1))
    recorder.batch(tuple(x[:4] for x in data().tensors))
    step = torch.compile(optimizer.step, backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="dosimeter looks at every step.*fullgraph=True"):
        step()


def rounded(model: Any, batch: Any) -> Any:
    """The loss with products of 16 bits, in the training and for the recorder alike."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return cross_entropy(model, batch).float()


@pytest.mark.parametrize("noise", [1.0, 0.5])
def test_mixed_precision(noise: float) -> None:
    recorder, model, optimizer = made()
    recorder.loss = rounded
    loader = torch.utils.data.DataLoader(data(), batch_sampler=Coins(3))
    torch.manual_seed(3)
    for batch in recorder.watch(loader):
        optimizer.zero_grad()
        private_step(model, batch, list(model.parameters()), noise=noise, loss=rounded)
        optimizer.step()
    accused = {finding.test for finding in recorder.findings() if finding.accused}
    assert accused == (set() if noise == 1.0 else {"noise"}), recorder


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_holds_what_the_processor_holds() -> None:
    """Directions, coins and scores are the same wherever the parameters are."""
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = Net().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        canary = GradientCanary(optimizer, **options(count=16, observe="all"))
        recorder = Recorder(
            model, optimizer, claim=RUN, loss=cross_entropy, every=3, canaries=canary
        )
        noise = torch.Generator().manual_seed(1)
        for batch in recorder.watch(torch.utils.data.DataLoader(data(), batch_sampler=Coins(0))):
            batch = tuple(part.to(device) for part in batch)
            optimizer.zero_grad()
            private_step(model, batch, list(model.parameters()), generator=noise)
            optimizer.step()
        assert not recorder.accused, recorder
        found.append(canary.scores())
    assert numpy.allclose(found[0], found[1], rtol=1e-3, atol=1e-2)


def test_a_scaler_unscales_before_canaries_are_added() -> None:
    parameters, optimizer = optimizer_of((100,))
    canary = GradientCanary(optimizer, observe="all", **options())
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    (parameters[0].sum() * 0.0).backward()
    scaler.scale(parameters[0].sum() * 0.0).backward()
    scaler.step(optimizer)
    assert numpy.allclose(canary.scores(), canary.included, atol=1e-5)
    optimizer.grad_scale = torch.tensor(2.0)
    with pytest.raises(dosimeter.Unsupported, match="fused"):
        optimizer.step()


def test_refusals_name_what_they_refuse() -> None:
    class FlatParameter(torch.nn.Parameter):  # type: ignore[misc]
        pass

    flat = FlatParameter(torch.zeros(3))
    if type(flat).__name__ == "FlatParameter":
        with pytest.raises(dosimeter.Unsupported, match="FSDP1"):
            GradientCanary(torch.optim.SGD([flat], lr=1.0), **options(count=1))
    zero = torch.nn.Parameter(torch.zeros(3))
    zero.ds_id = 0
    with pytest.raises(dosimeter.Unsupported, match="DeepSpeed"):
        GradientCanary(torch.optim.SGD([zero], lr=1.0), **options(count=1))
    recorder, _, _ = made()
    with pytest.raises(dosimeter.InvalidInput, match="one number for each"):
        recorder.loss = lambda model, batch: cross_entropy(model, batch).mean()
        recorder.batch(tuple(x[:4] for x in data().tensors))
        recorder._look(4)


def test_dropout_is_not_taken_for_a_mistake() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Dropout(0.5), torch.nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = Recorder(model, optimizer, claim=RUN, loss=cross_entropy, every=3)
    train(recorder, model, optimizer)
    assert not recorder.accused, recorder
    assert any("dropout" in note for note in recorder.recording.notes)


def test_record_canaries() -> None:
    held_out = torch.utils.data.TensorDataset(torch.randn(50, 8), torch.arange(50) % 3)
    canaries = Canaries.mislabelled(held_out, count=30, classes=3, seed=1)
    labels = {int(label) for _, label in canaries.examples}
    assert labels == {0, 1, 2} and len(canaries) == 30
    originals = {tuple(x.tolist()): int(y) for x, y in held_out}
    assert all(originals[tuple(x.tolist())] != int(y) for x, y in canaries.examples)
    assert len(canaries.inserted_into(held_out)) == 50 + canaries.included.sum()
    scores = canaries.scores(Net(), batch_size=7)
    assert len(scores) == 30 and (scores <= 0).all()
    blank = Canaries.blank(torch.randn(8), label=2, count=4, seed=0)
    assert (blank.examples[0][0] == 0).all()
    tokens = Canaries.new_tokens([90, 91], [[1, 2, 3], [4, 5, 6]], seed=0)
    assert tokens.examples[1]["input_ids"].tolist() == [4, 5, 91]


CLUSTER = """
import sys, numpy, torch, torch.distributed as dist
import dosimeter
from dosimeter.torch import GradientCanary, Recorder, cross_entropy
sys.path.insert(0, {folder!r})
rank, port, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{{port}}", rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
keys = dict(clip_norm=1.0, sample_rate=1.0, divisor=8.0, count=16, seed=3)
if mode == "shard":
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    canary = GradientCanary(optimizer, **keys)
    model(torch.zeros(2, 8)).sum().mul(0.0).backward()
    optimizer.step()
    if rank == 0:
        print(numpy.abs(canary.scores() - canary.included / 8.0).max() < 1e-5)
    else:
        canary.scores()
else:
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    run = dosimeter.Run(noise_multiplier=1.0, dataset_size=64, batch_size=8, steps=15)
    canary = GradientCanary(optimizer, **keys)
    recorder = Recorder(wrapped, optimizer, claim=run, loss=cross_entropy, every=1, canaries=canary)
    noise = torch.Generator().manual_seed(5)
    for step in range(15):
        coins = numpy.random.default_rng([step, 9]).random(64) < 1 / 8
        mine = [i for i in range(64) if coins[i] and i % 2 == rank]
        inputs = torch.stack([torch.full((8,), float(i % 5) - 2) for i in mine]) if mine else torch.zeros(0, 8)
        batch = inputs, torch.tensor([i % 3 for i in mine], dtype=torch.long)
        recorder.batch(batch, records=mine)
        parameters = list(model.parameters())
        total = [torch.zeros_like(p) for p in parameters]
        for i in range(len(mine)):
            g = torch.autograd.grad(cross_entropy(model, (inputs[i:i+1], batch[1][i:i+1])).sum(), parameters)
            n = float(sum(x.pow(2).sum() for x in g)) ** 0.5
            for t, x in zip(total, g):
                t += x * min(1.0, 1.0 / n)
        for p, t in zip(parameters, total):
            dist.all_reduce(t)
            p.grad = (t + torch.randn(t.shape, generator=noise)) / 8.0
        optimizer.step()
    values = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    other = values.clone()
    dist.broadcast(other, 0)
    if rank == 0:
        print(not recorder.accused and recorder.recording.steps == 15)
    else:
        assert torch.equal(values, other), "the ranks drifted apart"
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("mode", ["parallel", "shard"])
def test_two_ranks(mode: str, tmp_path: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(CLUSTER.format(folder=str(tmp_path)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(script)]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(port), mode], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    ends = [rank.communicate(timeout=300) for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), ends
    assert ends[0][0].strip().splitlines()[-1] == "True", ends


def test_plain_pytorch_shows_what_our_own_trainer_shows(tmp_path: Path) -> None:
    """The same model, data, canary and noise: the same law of scores, so the same epsilon."""
    records, width, steps, noise, rate, trials = 200, 6, 10, 1.0, 0.5, 1000
    generator = numpy.random.default_rng(0)
    inputs = generator.normal(size=(records, width)).astype(numpy.float32)
    labels = (inputs.sum(axis=1) > 0).astype(int)
    header = ",".join([*(f"x{i}" for i in range(width)), "label"])
    table = "\n".join(",".join([*map(repr, map(float, row)), str(label)])
                      for row, label in zip(inputs, labels, strict=True))
    (tmp_path / "data.csv").write_text(f"{header}\n{table}\n")
    toml = tmp_path / "run.toml"
    toml.write_text(
        f"[run]\nnoise_multiplier = {noise}\nsample_rate = {rate}\nsteps = {steps}\nseed = 3\n"
        "[data]\npath = 'data.csv'\nlabel = 'label'\nclasses = 2\ncolumn = [\n"
        + "".join(f"{{ name = 'x{i}', mean = 0, deviation = 1 }},\n" for i in range(width))
        + "]\n"
        "[model]\nkind = 'softmax'\n[optimizer]\nkind = 'sgd'\nlearning_rate = 0.5\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        game = dosimeter.attack(
            "gradient", run=toml, trials=trials, coordinate=0, out=tmp_path / "ours.csv"
        )
    ours = game.read()

    features = torch.from_numpy(inputs)
    targets = torch.from_numpy(labels)

    def play(member: bool, seed: int) -> float:
        torch.manual_seed(seed)
        coins = numpy.random.default_rng(seed)
        model = torch.nn.Linear(width, 2)
        torch.nn.init.zeros_(model.weight)
        torch.nn.init.zeros_(model.bias)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        canary = GradientCanary(
            optimizer, clip_norm=1.0, sample_rate=rate, divisor=rate * records, seed=seed,
            member=member, direction=[torch.eye(width)[:1].repeat(2, 1) * torch.tensor([[1.0], [0.0]]),
                                      torch.zeros(2)],
        )
        for _ in range(steps):
            chosen = torch.from_numpy(numpy.flatnonzero(coins.random(records) < rate))
            x, y = features[chosen], targets[chosen]
            error = torch.softmax(model(x), 1).detach() - torch.nn.functional.one_hot(y, 2)
            norms = error.norm(dim=1) * (x.pow(2).sum(1) + 1).sqrt()
            error = error * (1.0 / norms).clamp(max=1.0).unsqueeze(1)
            for parameter, total in ((model.weight, error.T @ x), (model.bias, error.sum(0))):
                parameter.grad = (total + noise * torch.randn_like(total)) / (rate * records)
            optimizer.step()
        return float(canary.scores()[0])

    experiment = dosimeter.experiment(play, version="plain", chunk=50)
    experiment.run(trials=trials, out=tmp_path / "theirs.csv")
    theirs = experiment.read()

    def separation(sides: tuple[Any, Any]) -> float:
        members, others = (numpy.asarray(side) for side in sides)
        pooled = ((members.var() + others.var()) / 2) ** 0.5
        return float((members.mean() - others.mean()) / pooled)

    # d' has a standard error of about sqrt(2 / trials): four of the difference's.
    one, other = separation(ours), separation(theirs)
    assert abs(one - other) < 4 * (4 / trials) ** 0.5, (one, other)
    bounds = [
        dosimeter.audit(members=sides[0], nonmembers=sides[1], delta=1e-5, method="gdp",
                        design="runs").primary.epsilon_lower
        for sides in (ours, theirs)
    ]
    # Of a Gaussian law, d' of 1 is epsilon of 4.4 at this delta: the same error in other words.
    assert abs(bounds[0] - bounds[1]) < 4.4 * 4 * (4 / trials) ** 0.5, bounds
