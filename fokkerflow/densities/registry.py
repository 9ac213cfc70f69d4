"""Densities by name: ``density("exact", Heston())``. One table for the library, the command line and the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fokkerflow.densities.density import Density
from fokkerflow.sde.model import SDE

Factory = Callable[..., Density]

_METHODS: dict[str, dict[type[SDE], Factory]] = {}


def register(method: str, model: type[SDE] = SDE) -> Callable[[Factory], Factory]:
    """Decorate a density (or a function that makes one) to be found by name for a model and its subclasses."""

    def add(factory: Factory) -> Factory:
        _METHODS.setdefault(method, {})[model] = factory
        return factory

    return add


def methods(sde: SDE) -> list[str]:
    """The names of all methods that apply to a model. A factory may say so itself, by a function `applies` of the model."""
    found = {name: [f for model, f in table.items() if isinstance(sde, model)] for name, table in _METHODS.items()}
    return [name for name, factories in found.items() if any(getattr(f, "applies", _always)(sde) for f in factories)]


def every_method() -> list[str]:
    """The names of all methods, whatever models they are for."""
    return list(_METHODS)


def _always(_: SDE) -> bool:
    return True


def density(method: str, sde: SDE, **options: Any) -> Density:
    """The transition density of `sde` by a method's name.

    **Arguments:**

    - `method`: "exact" and others; `methods(sde)` lists those that apply to a model.
    - `sde`: a model.
    - `options`: passed to the density.
    """
    if not isinstance(sde, SDE):
        raise TypeError(f"Got {sde!r} as the model, expected an SDE such as fokkerflow.Heston().")
    if method not in _METHODS:
        raise ValueError(f"Got method {method!r}, expected one of {', '.join(map(repr, _METHODS))}.")
    for model, factory in _METHODS[method].items():
        if isinstance(sde, model):
            return factory(sde, **options)
    known = ", ".join(model.__name__ for model in _METHODS[method])
    raise ValueError(
        f"Method {method!r} is not available for {sde.label}; it exists for {known}. "
        f"Available for {sde.label}: {', '.join(methods(sde)) or 'none'}."
    )
