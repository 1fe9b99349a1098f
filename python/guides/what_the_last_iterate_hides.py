# %% [markdown]
# # What does the last iterate hide?
#
# Accounting assumes that an attacker sees every iterate; usually only the last model is released.
# Steinke et al. (2025) ask what the last iterate would leak if the loss were linear. This guide
# shows the gap, plays the game behind it, and then one where hiding the iterates hides nothing.

# %%
import tempfile
from pathlib import Path

import dosimeter

run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## The gap

# %%
account = dosimeter.account(run, delta=1e-5, lens=["composition", "last-iterate", "full-batch"])
for claim in account.select(quantity="epsilon"):
    print(claim)
composition, last, _ = account.select(quantity="epsilon")
assert last.upper < composition.lower and last.standing == "heuristic"
dosimeter.figure(account).save(folder / "tradeoff.svg")

# %% [markdown]
# It is not monotone: with little noise and rare sampling, training longer can lower it.
# `last-iterate-max` takes the worst over all shorter trainings.

# %%
few = dosimeter.Run(noise_multiplier=0.5, sample_rate=0.01, steps=20)
curve = dosimeter.steps(few, delta=1e-6, lens="last-iterate", points=20)
print("epsilon after 1 step:", round(curve.epsilon[0], 3), "after 20:", round(curve.epsilon[-1], 3))
assert curve.epsilon[-1] < curve.epsilon[0]

# %% [markdown]
# ## Play it
#
# In the linear game the heuristic is exact: a constant canary gradient, nothing else. The
# audit of twenty thousand games cannot show more than the heuristic says, and comes near it.

# %%
game = dosimeter.attack("linear", run=run, trials=20_000, out=folder / "linear.csv")
audit = game.audit(delta=1e-5, claim=run, method=["clopper-pearson", "gdp"], primary="gdp")
for bound in audit.bounds:
    print(bound)
assert audit.primary.epsilon_lower < last.upper

# %% [markdown]
# ## A world where hiding hides nothing
#
# A regulariser that shifts every step's value to a place of its own makes the last iterate
# remember all of them. Then only the proven number holds.

# %%
short = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.1, steps=10)
facts = dosimeter.attack("shift-register", run=short, delta=1e-6)
for fact in facts.exact:
    print(f"{fact['name']:15} epsilon {fact['value']:.4f}  {fact['note']}")
values = {fact["name"]: fact["value"] for fact in facts.exact}
assert values["release"] > values["last-iterate"]
