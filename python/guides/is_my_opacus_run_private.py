# %% [markdown]
# # Is my Opacus run private?
#
# A training with Opacus, with Dosimeter's accountant in place of Opacus' own. At the end: the
# proven epsilon, what it means for an attacker, whether the batches were what the accounting
# assumes, and an audit of the same training by canaries.

# %%
import warnings

import torch
from opacus import PrivacyEngine

import dosimeter
import dosimeter.opacus

warnings.filterwarnings("ignore", message="Secure RNG turned off")
torch.manual_seed(0)
torch.set_num_threads(1)    # tiny tensors

# %% [markdown]
# ## The training
#
# Two thousand records of a toy problem, and 400 canaries: records with random labels, of which a
# coin decides whether they are trained on. `accountant="dosimeter"` is the only change to the
# usual lines.

# %%
inputs = torch.randn(2000, 16)
records = torch.utils.data.TensorDataset(inputs, (inputs[:, 0] > 0).long())
odd = torch.utils.data.TensorDataset(2 * torch.randn(400, 16), torch.randint(0, 2, (400,)))
canaries = dosimeter.opacus.Canaries(odd, seed=1)
dataset = canaries.inserted_into(records)

model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
loader = torch.utils.data.DataLoader(dataset, batch_size=100)
engine = PrivacyEngine(accountant="dosimeter")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
)
recorder = dosimeter.opacus.Recorder(optimizer, loader=loader, canaries=canaries)

for epoch in range(8):
    for batch, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()

# %% [markdown]
# ## What is proven
#
# The composition lens is the number to sign: an attacker who sees every iterate. Its ends are
# certified; `get_epsilon` quotes the upper one.

# %%
delta = 1e-5
account = engine.accountant.account(delta=delta)
for claim in account.select(lens="composition"):
    print(claim)
epsilon = engine.get_epsilon(delta=delta)
assert epsilon == account[0].upper

# %% [markdown]
# ## Was it what the accounting assumes?
#
# The proof holds for Poisson batches. The recorder saw the batches that were really drawn: their
# sizes, and the numbers of batches that a record is in, have to vary like binomial numbers.
# With `poisson_sampling=False` the accountant warns, and this check finds it as well.

# %%
rate = 1 / len(loader)
suspicion = recorder.check_sampling(dataset_size=len(dataset), sample_rate=rate)
print("batches:", suspicion or "as Poisson sampling draws them")
assert suspicion is None and engine.accountant.poisson

# %% [markdown]
# ## What an attack finds
#
# Each canary's score is minus its loss under the final model. The bound holds with 95 %
# confidence for any mechanism; a bound above the proven epsilon would mean that something is
# wrong with the training, and one far below it that this attack is weak.

# %%
recorder.observe(model)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", dosimeter.DosimeterWarning)
    audit = recorder.audit(delta=delta, claim=engine.accountant.run())
print(audit.primary)
print(audit.verdict.status, "-", audit.verdict.reason)
assert audit.verdict.status != "contradiction"
