"""What `neural_likelihood.py` asks of sbi, in a process of its own: nothing but torch, sbi and NumPy is imported here.

The process is given a folder with `asked.npz` and leaves `found.npz` there, so that sbi may live in another environment.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sbi.inference import NLE

_BATCH, _EVALUATED_AT_ONCE = 500, 10_000


def answer(folder: str) -> None:
    """Train sbi's neural likelihood on the simulations that were asked for, and evaluate it where it was asked for."""
    with np.load(Path(folder) / "asked.npz") as asked:
        theta, x, theta_at, x_at = (torch.as_tensor(asked[k], dtype=torch.float32) for k in ("theta", "x", "theta_at", "x_at"))
        seconds, seed = float(asked["seconds"]), int(asked["seed"])
    torch.manual_seed(seed)
    started = time.monotonic()
    trainer = NLE(show_progress_bars=False).append_simulations(theta, x)
    estimator, epochs = _train(trainer, started + seconds)
    spent = time.monotonic() - started
    with torch.no_grad():
        log_q = [
            estimator.log_prob(some_x[None], condition=some_theta)[0].double().numpy()
            for some_x, some_theta in zip(x_at.split(_EVALUATED_AT_ONCE), theta_at.split(_EVALUATED_AT_ONCE), strict=True)
        ]
    size = sum(p.numel() for p in estimator.parameters())
    np.savez(Path(folder) / "found.npz", log_q=np.concatenate(log_q), epochs=epochs, seconds=spent, weights=size)


def _train(trainer: Any, end: float) -> tuple[Any, int]:
    """Epochs until the time is up, or until sbi finds that the training has converged.

    sbi counts epochs and no time. The first two are timed, and what is left is spent in a few runs of known length, each of
    which goes on from the one before with the weights that were best in validation.
    """
    began = time.monotonic()
    estimator = trainer.train(training_batch_size=_BATCH, max_num_epochs=1)  # sbi runs one epoch more than it is told
    while True:
        an_epoch = (time.monotonic() - began) / trainer.epoch
        more = int(0.6 * (end - time.monotonic()) / an_epoch + 0.4)
        if more < 1:
            return estimator, trainer.epoch
        before = trainer.epoch
        estimator = trainer.train(training_batch_size=_BATCH, resume_training=True, max_num_epochs=before + more - 1)
        if trainer.epoch < before + more:  # converged
            return estimator, trainer.epoch
