"""The package on a bare interpreter, without NumPy or a test runner: any supported version."""

from __future__ import annotations

import pickle
import sys

import dosimeter

run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
account = dosimeter.account(run, delta=1e-5)
assert abs(account[0].value - 1.82823666651) < 1e-9, account[0]
assert pickle.loads(pickle.dumps(account)) == account
assert dosimeter.Account.from_json(account.to_json()) == account
assert "<svg" in account._repr_html_()
audit = dosimeter.audit(members=[1.0, 2.0, 3.0], nonmembers=[0.0, 1.0, 0.5], delta=1e-5)
assert audit.primary.epsilon_lower is not None
try:
    dosimeter.Run(noise_multiplier=1.0, sample_rate=1.3, steps=10)
except dosimeter.InvalidInput as error:
    assert "1.3" in str(error)
else:
    raise AssertionError("a sample rate above one was accepted")
print(f"Python {sys.version.split()[0]}: {account[0]}")
