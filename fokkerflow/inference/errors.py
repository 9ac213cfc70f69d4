"""Inference that cannot go on."""


class InferenceError(RuntimeError):
    """No starting point, no maximum, or no evidence: the message says which and what to do."""
