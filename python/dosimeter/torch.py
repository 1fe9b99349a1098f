"""Audits of any PyTorch loop; no Opacus needed.

Three tools, alone or together:

- :class:`Recorder` watches one training and tests what it really drew, clipped, divided and
  noised against the claim, with a stated false-alarm rate.
- :class:`GradientCanary` inserts the clipped gradients of imaginary records into the optimizer's
  step, and scores how far the model follows: thousands of canaries in one training.
- :class:`Canaries` are records, mislabelled, blank or with tokens of their own, in the training or
  not by a coin.

::

    from dosimeter.torch import GradientCanary, Recorder, cross_entropy

    run = dosimeter.Run(noise_multiplier=1.0, dataset_size=60_000, batch_size=256, steps=1000)
    canaries = GradientCanary(optimizer, clip_norm=1.0, sample_rate=run.sample_rate,
                              divisor=256, count=1000, seed=7)
    recorder = Recorder(model, optimizer, claim=run, loss=cross_entropy, canaries=canaries)
    for inputs, labels in recorder.watch(loader):
        ...                                     # your step, as it is
    print(recorder)                             # what contradicts the claim
    print(recorder.audit(delta=1e-5, claim=run))
"""

from __future__ import annotations

from ._torch_gradients import GradientCanary
from ._torch_recorder import Recorder
from ._torch_records import Canaries, Loss, cross_entropy

__all__ = ["Canaries", "GradientCanary", "Loss", "Recorder", "cross_entropy"]
