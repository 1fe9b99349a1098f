# %% [markdown]
# # Choose the noise for a threat, not for an epsilon
#
# "Epsilon at most 8" says little about what an attacker can do. This guide starts from the threat
# (which attack, how good may it get) and ends at the noise multiplier.

# %%
import dosimeter
from dosimeter import risk

training = {"dataset_size": 60_000, "batch_size": 256, "epochs": 30}

# %% [markdown]
# ## What does epsilon 8 allow?

# %%
usual = dosimeter.calibrate("noise_multiplier", target_epsilon=8.0, delta=1e-6, **training)
account = dosimeter.account(usual.run, delta=1e-6, fpr=[1e-4, 1e-3, 1e-2], lens="composition")
print(usual)
for claim in account:
    print(" ", claim)

# %% [markdown]
# An attack with one false alarm in a thousand finds up to this share of the members. If that is
# too much for the threat at hand, say what is not.
#
# ## Say the threat
#
# Three ways: the power of an attack that must hardly ever be wrong; its advantage over guessing;
# the success of somebody who tries to reconstruct a record among a thousand candidates.

# %%
threats = {
    "TPR at most 1 % at FPR 0.1 %": {"target_tpr": 0.01, "fpr": 1e-3},
    "advantage at most 10 %": {"target_advantage": 0.1},
    "reconstruction among 1000 at most 2 %": {"target_reconstruction": 0.02, "prior": 1e-3},
    "epsilon at most 8": {"target_epsilon": 8.0, "delta": 1e-6},
}
answers = {
    name: dosimeter.calibrate("noise_multiplier", **target, **training)
    for name, target in threats.items()
}
for name, answer in answers.items():
    epsilon = dosimeter.account(answer.run, delta=1e-6, lens="composition")[0]
    print(f"{name:40} noise {answer.solution:.4f}, epsilon {epsilon.upper:.3f}")
    assert answer.slack >= 0

# %% [markdown]
# The same threats give different epsilons: an epsilon is one projection of the trade-off curve.
# Every answer is on the safe side of its target; `achieved` is the claim that proves it.
#
# ## And the other threat models
#
# If the attacker sees the final model alone, the last-iterate heuristic asks for less noise. It
# is no proof (it assumes a linear loss), and is labelled so.

# %%
proven = answers["advantage at most 10 %"]
heuristic = dosimeter.calibrate(
    "noise_multiplier", target_advantage=0.1, lens="last-iterate", **training
)
print(proven.achieved)
print(heuristic.achieved)
assert heuristic.solution < proven.solution and heuristic.achieved.standing == "heuristic"

# %% [markdown]
# The functions of riskcal, by their names, are in `dosimeter.risk`.

# %%
rate, steps = proven.run.sample_rate, proven.run.steps
noise = risk.find_noise_multiplier_for_advantage(0.1, rate, steps)
assert abs(noise - proven.solution) < 1e-9
print(f"FNR at FPR 1 %: at least {risk.get_beta_for_dpsgd(noise, rate, steps, 0.01):.4f}")
