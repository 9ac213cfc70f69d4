"""The interface of a model: paper section 2, ``dX = b(t, X, mu) dt + sqrt(Sigma(t, X, mu)) dW`` on a box Omega.

A model is data and formulas. Nothing here simulates, expands or solves; those algorithms take any `SDE`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import ClassVar

from jaxtyping import Array, Float

from fokkerflow.sde.constraint import Constraint
from fokkerflow.sde.domain import Domain

Scalar = Float[Array, ""]
State = Float[Array, " d"]
Parameters = Float[Array, " n"]
Matrix = Float[Array, "d d"]


class SDE(abc.ABC):
    """A diffusion, given by its drift and covariance.

    A subclass states its data as class attributes and its two formulas as methods, unbatched and in JAX:

    ```python
    class Vasicek(fokkerflow.SDE):
        name = "vasicek"
        states = {"r": fokkerflow.Domain()}
        parameters = ("speed", "mean", "sigma")
        constraints = (fokkerflow.Constraint("speed > 0"), fokkerflow.Constraint("sigma > 0"))
        typical = {"speed": 1.0, "mean": 0.03, "sigma": 0.01}
        start = (0.03,)

        def drift(self, t, x, p):
            speed, mean, _ = p
            return speed * (mean - x)

        def covariance(self, t, x, p):
            return jnp.array([[p[2] ** 2]])
    ```

    **Attributes:**

    - `name`: short, lower case; the word for it on the command line.
    - `states`: name of each coordinate and the `Domain` it lives in, in order.
    - `parameters`: names of the parameters, in order.
    - `constraints`: inequalities between parameters under which the model is valid and its boundaries inaccessible.
    - `typical`: a parameter value that makes sense, by name; used for probing, examples and tests.
    - `start`: a state that makes sense.
    - `autonomous`: False if drift or covariance depend on the time t.

    Two models are equal if they have the same type and the same fields, so a model can be a static argument of `jax.jit`.
    """

    name: ClassVar[str]
    states: ClassVar[Mapping[str, Domain]]
    parameters: ClassVar[tuple[str, ...]]
    typical: ClassVar[Mapping[str, float]]
    start: ClassVar[tuple[float, ...]]
    constraints: ClassVar[tuple[Constraint, ...]] = ()
    autonomous: ClassVar[bool] = True

    @abc.abstractmethod
    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        """b(t, x, p), of shape ``(d,)``."""

    @abc.abstractmethod
    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        """Sigma(t, x, p), of shape ``(d, d)``, symmetric and positive definite inside the domain."""

    @property
    def label(self) -> str:
        """What error messages call the model."""
        return type(self).__name__

    @property
    def dimension(self) -> int:
        return len(self.states)

    @property
    def domains(self) -> tuple[Domain, ...]:
        return tuple(self.states.values())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        states = ", ".join(f"{name} in {domain}" for name, domain in self.states.items())
        return f"{type(self).__name__}(states: {states}; parameters: {', '.join(self.parameters)})"
