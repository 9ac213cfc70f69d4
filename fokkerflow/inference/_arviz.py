"""ArviZ, without the notice about its next major version that it shows once a day; we stay below that version."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz

__all__ = ["arviz"]
