"""Makes table.csv and reference.json: what statsmodels and scipy say about one synthetic table.

    python -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0 pandas==3.1.1
    venv/bin/python crates/tuning/tests/reference/make.py

The versions that made the committed values are in reference.json. The truth behind the table:
score = a(epsilon) + 0.03 ln b + 0.05 ln T + 0.07 ln eta + N(0, 0.02^2) of the configuration
+ N(0, 0.03^2) of the seed.
"""

import json
import pathlib
import sys

import numpy as np
import pandas as pd
import scipy
import scipy.stats as st
import statsmodels
import statsmodels.api as sm

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(20251115)

rows = []
for epsilon, intercept in [(2.0, 0.10), (8.0, 0.35)]:
    for b in [64, 256, 1024]:
        for T in [125, 500, 2000]:
            for eta in [0.0005, 0.002]:
                effect = rng.normal(0, 0.02)
                for seed in range(3):
                    if epsilon == 8.0 and b == 64 and T == 125 and seed == 2:
                        continue  # unbalanced on purpose
                    score = intercept + 0.03 * np.log(b) + 0.05 * np.log(T) + 0.07 * np.log(eta) + 0.4
                    score += effect + rng.normal(0, 0.03)
                    utility = 0.5 + 0.02 * np.log(b * T * eta) + rng.normal(0, 0.01)
                    audit = max(0.0, 0.4 * utility + rng.normal(0, 0.05))
                    rows.append(dict(batch_size=b, steps=T, learning_rate=eta, clip_norm=0.5, epsilon=epsilon,
                                     delta=1e-5, seed=seed, score_vmr=round(score, 6),
                                     utility=round(utility, 6), audit_epsilon=round(audit, 2)))
table = pd.DataFrame(rows)
table.to_csv(here / "table.csv", index=False)
table = pd.read_csv(here / "table.csv")

keys = ["epsilon", "batch_size", "steps", "learning_rate"]
means = table.groupby(keys, sort=False).agg(
    score_vmr=("score_vmr", "mean"), utility=("utility", "mean"), audit_epsilon=("audit_epsilon", "mean")
).reset_index()
# Means that are equal but for the order of their sums are ties.
for column in ["score_vmr", "utility", "audit_epsilon"]:
    means[column + "_rank"] = means[column].map(lambda v: float(f"{v:.11e}"))


def design(frame):
    X = [np.where(frame.epsilon == e, 1.0, 0.0) for e in sorted(frame.epsilon.unique())]
    X += [np.log(frame[c].astype(float)) for c in ["batch_size", "steps", "learning_rate"]]
    return np.column_stack(X)


def described(fit, slopes):
    interval = fit.conf_int(0.05)
    k = len(fit.params)
    rows = np.zeros((3, k))
    for i, s in enumerate(slopes):
        rows[i, s] = 1
    joint = fit.f_test(rows)
    contrast = np.zeros(k)
    contrast[slopes[0]], contrast[slopes[1]] = 1, -1
    t = fit.t_test(contrast)
    return dict(params=list(map(float, fit.params)), bse=list(map(float, fit.bse)), t=list(map(float, fit.tvalues)),
                p=list(map(float, fit.pvalues)), lower=list(map(float, interval[:, 0])),
                upper=list(map(float, interval[:, 1])), r2=float(fit.rsquared), adj=float(fit.rsquared_adj),
                f=float(np.squeeze(joint.fvalue)), f_p=float(np.squeeze(joint.pvalue)),
                contrast=[float(np.squeeze(t.effect)), float(np.squeeze(t.sd)), float(np.squeeze(t.pvalue))])


out = dict(versions=dict(python=sys.version.split()[0], numpy=np.__version__, scipy=scipy.__version__,
                         statsmodels=statsmodels.__version__), regression={})
for name, frame in [("one", means[means.epsilon == 8.0]), ("both", means)]:
    y, X = frame.score_vmr.to_numpy(), design(frame)
    slopes = list(range(X.shape[1] - 3, X.shape[1]))
    model = sm.OLS(y, X)
    out["regression"][f"{name}-classical"] = described(model.fit(), slopes)
    for kind in ["HC1", "HC3"]:
        out["regression"][f"{name}-{kind.lower()}"] = described(model.fit(cov_type=kind, use_t=True), slopes)
runs = table[table.epsilon == 8.0]
X = design(runs)
slopes = [1, 2, 3]
for name, groups in [("configuration", runs.groupby(keys, sort=False).ngroup().to_numpy()), ("seed", runs.seed.to_numpy())]:
    fit = sm.OLS(runs.score_vmr.to_numpy(), X).fit(cov_type="cluster", cov_kwds=dict(groups=groups), use_t=True)
    if name == "seed":  # three clusters do not determine a joint test of three slopes
        joint = {"params": list(map(float, fit.params)), "bse": list(map(float, fit.bse)),
                 "t": list(map(float, fit.tvalues)), "p": list(map(float, fit.pvalues)),
                 "lower": list(map(float, fit.conf_int()[:, 0])), "upper": list(map(float, fit.conf_int()[:, 1])),
                 "r2": float(fit.rsquared), "adj": float(fit.rsquared_adj)}
        out["regression"]["runs-seed"] = joint
    else:
        out["regression"]["runs-configuration"] = described(fit, slopes)

one = means[means.epsilon == 8.0]
samples = [g.score_vmr.to_numpy() for _, g in runs.groupby(keys, sort=False)]
anova = st.f_oneway(*samples)
within = sum(((s - s.mean()) ** 2).sum() for s in samples) / (sum(map(len, samples)) - len(samples))
variance = one.score_vmr.var(ddof=1)
out["spread"] = dict(observed=float(np.sqrt(variance)), seed_noise=float(np.sqrt(within)),
                     between=float(np.sqrt(variance - within * np.mean([1 / len(s) for s in samples]))),
                     f=float(anova.statistic), p=float(anova.pvalue))
out["correlations"] = []
for a, b in [("audit_epsilon", "score_vmr"), ("audit_epsilon", "utility"), ("score_vmr", "utility")]:
    rho, tau = (
        st.spearmanr(one[a + "_rank"], one[b + "_rank"]),
        st.kendalltau(one[a + "_rank"], one[b + "_rank"], method="asymptotic"),
    )
    out["correlations"].append(dict(of=a, with_=b, spearman=float(rho.statistic), p=float(rho.pvalue),
                                    kendall=float(tau.statistic), kendall_p=float(tau.pvalue)))
x, y = [1, 2, 2, 3, 3, 3, 5, 8, 8, 9], [2, 1, 2, 2, 4, 3, 3, 7, 9, 7]
rho, tau = st.spearmanr(x, y), st.kendalltau(x, y, method="asymptotic")
out["ties"] = dict(x=x, y=y, spearman=float(rho.statistic), p=float(rho.pvalue), kendall=float(tau.statistic), kendall_p=float(tau.pvalue))
out["distributions"] = dict(
    t=[[t, d, float(2 * st.t.sf(t, d))] for t in [0.01, 0.7, 2.3, 11.0] for d in [2, 5, 31, 300]],
    t_quantile=[[c, d, float(st.t.ppf(0.5 + c / 2, d))] for c in [0.8, 0.95, 0.999] for d in [2, 5, 31, 300]],
    f=[[f, a, b, float(st.f.sf(f, a, b))] for f in [0.2, 1.0, 4.0, 60.0] for a in [1, 3, 17] for b in [2, 14, 200]],
    f_quantile=[[p, a, b, float(st.f.ppf(p, a, b))] for p in [0.025, 0.5, 0.975] for a in [3, 17] for b in [5, 35]],
    chi2_quantile=[[p, d, float(st.chi2.ppf(p, d))] for p in [0.001, 0.025, 0.5, 0.975] for d in [1, 4, 17, 300]])
(here / "reference.json").write_text(json.dumps(out, indent=1) + "\n")
