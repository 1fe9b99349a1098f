"""LiRA and RMIA from their papers, in plain Python: writes `membership.json` beside itself.

The matrix has 9 models (the first is the target, the others are references) and 14 records; every record
is in exactly half of the references. Losses are -ln p of made-up probabilities.

RMIA (Zarifzadeh, Liu and Shokri 2024, equations 2 to 4 and appendix B.2.2); LiRA (Carlini et al. 2022,
algorithm 1 and its offline variant) with unbiased variances; the common variance is the sum of squares over all
records by its degrees of freedom.

Compared by hand with Privacy Meter (github.com/privacytrustlab/ml_privacy_meter, commit e384af8,
`modules/mia/attacks/rmia.py`, function `run_rmia`): with the references without the record as the population's
reference signals, its scores times 14/13 are `rmia_offline` at gamma 1 to the last digit (it counts the record itself among
the others, which never beats itself). Privacy Meter has no LiRA at that commit.
"""

import json
import math
import pathlib
import random
import statistics

MODELS, RECORDS = 9, 14


def matrix():
    draw = random.Random(20)
    hard = [draw.gauss(0.5, 1.5) for _ in range(RECORDS)]
    inside = [[False] * RECORDS for _ in range(MODELS)]
    for record in range(RECORDS):
        for model in draw.sample(range(1, MODELS), (MODELS - 1) // 2):
            inside[model][record] = True
        inside[0][record] = draw.random() < 0.5
    probability = [
        [1 / (1 + math.exp(-(hard[x] + draw.gauss(1.2 if inside[m][x] else 0.0, 1.0)))) for x in range(RECORDS)]
        for m in range(MODELS)
    ]
    return probability, inside


def references(table, inside, record, wanted):
    return [table[m][record] for m in range(1, MODELS) if inside[m][record] == wanted]


def rmia(probability, inside, gamma, a):
    def usual(x):
        out = statistics.fmean(references(probability, inside, x, False))
        if a is None:
            return (out + statistics.fmean(references(probability, inside, x, True))) / 2
        return ((1 + a) * out + (1 - a)) / 2

    ratio = [probability[0][x] / usual(x) for x in range(RECORDS)]
    share = lambda x: sum(ratio[x] / ratio[z] >= gamma for z in range(RECORDS) if z != x)
    return [share(x) / (RECORDS - 1) for x in range(RECORDS)]


def lira(probability, inside, online, common):
    logit = [[math.log(p / (1 - p)) for p in row] for row in probability]
    sides = [[references(logit, inside, x, wanted) for x in range(RECORDS)] for wanted in (False, True)]

    def deviation(side, x):
        if not common:
            return statistics.stdev(sides[side][x])
        squares = sum((len(s) - 1) * statistics.variance(s) for s in sides[side])
        return math.sqrt(squares / sum(len(s) - 1 for s in sides[side]))

    scores = []
    for x in range(RECORDS):
        laws = [statistics.NormalDist(statistics.fmean(sides[s][x]), deviation(s, x)) for s in (0, 1)]
        seen = logit[0][x]
        score = laws[0].zscore(seen)
        if online:
            score = math.log(laws[1].pdf(seen)) - math.log(laws[0].pdf(seen))
        scores.append(score)
    return scores


probability, inside = matrix()
answer = {
    "losses": [[-math.log(p) for p in row] for row in probability],
    "members": [[int(member) for member in row] for row in inside],
    "lira_online": lira(probability, inside, True, False),
    "lira_online_fixed": lira(probability, inside, True, True),
    "lira_offline": lira(probability, inside, False, False),
    "lira_offline_fixed": lira(probability, inside, False, True),
    "rmia_online": rmia(probability, inside, 1.0, None),
    "rmia_online_2": rmia(probability, inside, 2.0, None),
    "rmia_offline": rmia(probability, inside, 1.0, 0.3),
    "rmia_offline_2": rmia(probability, inside, 2.0, 0.7),
}
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(answer, indent=1) + "\n")
