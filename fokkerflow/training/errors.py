"""Trainings that go wrong for a numerical reason: the message says where, and what to try."""

from __future__ import annotations


class TrainingError(RuntimeError):
    """A training that cannot go on: a residual that is no longer finite, or a march whose steps are all refused."""
