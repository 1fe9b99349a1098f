# %% [markdown]
# # Audit in one training run
#
# Thousands of trainings give the strongest audit. One training with many canaries gives a valid
# one too (Steinke, Nasr, Jagielski 2023): each canary is in with probability 1/2, independently,
# and the audit is a bet on how many can be guessed right. This guide trains a logistic regression
# with DP-SGD in a few lines of NumPy, so that nothing is hidden.

# %%
import warnings

import numpy

import dosimeter

# What a reader should know about an answer is a warning; here it is printed with the answer.
warnings.simplefilter("ignore", dosimeter.DosimeterWarning)
generator = numpy.random.default_rng(0)

# %% [markdown]
# ## How many canaries?
#
# Before training: what could be shown at all, if the attack separates canaries like N(2, 1) from
# N(0, 1)?

# %%
plan = dosimeter.plan(target_epsilon=1.0, mu=2.0, design="one-run", delta=1e-5)
print("canaries needed to show epsilon 1:", plan["needed"]["canaries"])

# %% [markdown]
# ## Data, canaries, coins
#
# A canary here is a record along a direction of its own, where the other records have nothing:
# the attack that the guarantee has to withstand, not an average record.

# %%
width, records, count = 20, 2000, 1000
inputs = numpy.zeros((records, width + count))
inputs[:, :width] = generator.normal(size=(records, width))
labels = (inputs[:, 0] > 0).astype(float)
canaries = numpy.zeros((count, width + count))
canaries[numpy.arange(count), width + numpy.arange(count)] = 40.0
included = generator.random(count) < 0.5
data = numpy.concatenate([inputs, canaries[included]])
targets = numpy.concatenate([labels, numpy.ones(included.sum())])

# %% [markdown]
# ## DP-SGD
#
# Poisson batches, gradients clipped one by one, Gaussian noise on their sum.

# %%
run = dosimeter.Run(noise_multiplier=2.0, sample_rate=0.1, steps=100)
weights = numpy.zeros(width + count)
for _ in range(run.steps):
    batch = generator.random(len(data)) < run.sample_rate
    residuals = 1 / (1 + numpy.exp(-data[batch] @ weights)) - targets[batch]
    gradients = residuals[:, None] * data[batch]
    norms = numpy.linalg.norm(gradients, axis=1)
    clipped = gradients / numpy.maximum(norms / run.clip_norm, 1.0)[:, None]
    noise = generator.normal(scale=run.noise_multiplier * run.clip_norm, size=weights.shape)
    weights -= 0.1 * (clipped.sum(axis=0) + noise) / (run.sample_rate * len(data))

# %% [markdown]
# ## Scores and verdict
#
# The score of a canary is how far the model moved along it.

# %%
scores = canaries @ weights
audit = dosimeter.audit(
    members=scores[included],
    nonmembers=scores[~included],
    design="one-run",
    delta=1e-5,
    claim=run,
)
print("claimed:", dosimeter.account(run, delta=1e-5, lens="composition")[0])
print("shown:  ", audit.primary)
print("AUROC:  ", round(audit.auroc.value, 3))
print(audit.verdict.status, "-", audit.verdict.reason)
assert audit.verdict.status == "consistent" and audit.auroc.lower > 0.5

# %% [markdown]
# ## The same audit of a training that forgot to clip
#
# The claim is the same; the training is not. The canaries' gradients are twenty times the clip
# norm, and a contradiction is the answer: no exception, because it is what was asked.

# %%
weights = numpy.zeros(width + count)
for _ in range(run.steps):
    batch = generator.random(len(data)) < run.sample_rate
    residuals = 1 / (1 + numpy.exp(-data[batch] @ weights)) - targets[batch]
    gradients = residuals[:, None] * data[batch]
    noise = generator.normal(scale=run.noise_multiplier * run.clip_norm, size=weights.shape)
    weights -= 0.1 * (gradients.sum(axis=0) + noise) / (run.sample_rate * len(data))
scores = canaries @ weights
broken = dosimeter.audit(
    members=scores[included],
    nonmembers=scores[~included],
    design="one-run",
    delta=1e-5,
    claim=run,
)
print("shown:  ", broken.primary)
print(broken.verdict.status, "-", broken.verdict.reason)
assert broken.verdict.status == "contradiction"
