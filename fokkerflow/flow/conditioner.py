"""The networks of paper section 4.2: what the flow is conditioned on goes in, raw mixture parameters come out.

Each layer of each coordinate has one. The paper takes stacked GRU cells; a plain MLP is the faster choice.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class Conditioner(eqx.Module):
    """A map from inputs of shape ``(i,)`` to outputs of shape ``(o,)``."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, " i"]) -> Float[Array, " o"]:
        """The raw mixture parameters for inputs `x`."""


class Linear(eqx.Module):
    """``W x + b``."""

    weight: Float[Array, "o i"]
    bias: Float[Array, " o"]

    def __call__(self, x: Float[Array, " i"]) -> Float[Array, " o"]:
        return self.weight @ x + self.bias


class GRUCell(eqx.Module):
    """A gated recurrent unit (Cho et al. 2014) as in PyTorch, for sequences of length one from a zero hidden state h.

        r = sigmoid(W_ir x + b_ir + b_hr)       z = sigmoid(W_iz x + b_iz + b_hz)
        n = tanh(W_in x + b_in + r * b_hn)      output = (1 - z) * n + z * h = (1 - z) * n

    `hidden_weight` multiplies h = 0. It is a weight of the cell all the same (the paper counts it), with derivative zero.
    """

    input_weight: Float[Array, "gates i"]
    hidden_weight: Float[Array, "gates h"]
    input_bias: Float[Array, " gates"]
    hidden_bias: Float[Array, " gates"]

    def __call__(self, x: Float[Array, " i"]) -> Float[Array, " h"]:
        reset_in, update_in, new_in = jnp.split(self.input_weight @ x + self.input_bias, 3)
        reset_hidden, update_hidden, new_hidden = jnp.split(self.hidden_bias, 3)
        reset = jax.nn.sigmoid(reset_in + reset_hidden)
        update = jax.nn.sigmoid(update_in + update_hidden)
        return (1.0 - update) * jnp.tanh(new_in + reset * new_hidden)


class GRU(Conditioner):
    """`depth` stacked GRU cells of `width` hidden units and a linear head.

    3h(i + h) + 6h weights in the first cell, 6h^2 + 6h in each further one, (h + 1)o in the head. Initialised as in PyTorch,
    uniformly on +-1/sqrt(h); with ``zero_head=True`` the head starts at zero (paper appendix B).
    """

    cells: tuple[GRUCell, ...]
    head: Linear

    def __init__(self, key: PRNGKeyArray, inputs: int, outputs: int, *, width: int, depth: int, zero_head: bool = False):
        bound = 1.0 / math.sqrt(width)

        def draw(key: PRNGKeyArray, *shape: int) -> Array:
            return jax.random.uniform(key, shape, jnp.float64, -bound, bound)

        keys = jax.random.split(key, (depth + 1, 4))
        sizes = [inputs] + [width] * (depth - 1)
        self.cells = tuple(
            GRUCell(draw(k[0], 3 * width, size), draw(k[1], 3 * width, width), draw(k[2], 3 * width), draw(k[3], 3 * width))
            for k, size in zip(keys[:-1], sizes, strict=True)
        )
        self.head = _head(zero_head, Linear(draw(keys[-1, 0], outputs, width), draw(keys[-1, 1], outputs)))

    def __call__(self, x: Float[Array, " i"]) -> Float[Array, " o"]:
        for cell in self.cells:
            x = cell(x)
        return self.head(x)


class MLP(Conditioner):
    """`depth` hidden layers of `width` tanh units and a linear head, which starts small, or at zero with ``zero_head=True``.

    A head at exactly zero makes the derivative with respect to the hidden weights vanish, and the first least squares of
    a training singular; a small one does not.
    """

    hidden: tuple[Linear, ...]
    head: Linear

    def __init__(self, key: PRNGKeyArray, inputs: int, outputs: int, *, width: int, depth: int, zero_head: bool = False):
        sizes = [inputs] + [width] * depth
        keys = jax.random.split(key, (depth + 1, 2))

        def normal(key: PRNGKeyArray, *shape: int) -> Array:
            return jax.random.normal(key, shape, jnp.float64)

        self.hidden = tuple(
            Linear(normal(k[0], o, i) / math.sqrt(i), 0.3 * normal(k[1], o))
            for k, i, o in zip(keys[:-1], sizes[:-1], sizes[1:], strict=True)
        )
        small = 0.02 / math.sqrt(sizes[-1])
        self.head = _head(zero_head, Linear(small * normal(keys[-1, 0], outputs, sizes[-1]), jnp.zeros(outputs, jnp.float64)))

    def __call__(self, x: Float[Array, " i"]) -> Float[Array, " o"]:
        for layer in self.hidden:
            x = jnp.tanh(layer(x))
        return self.head(x)


CONDITIONERS: dict[str, Callable[..., Conditioner]] = {"gru": GRU, "mlp": MLP}
"""The kinds of conditioner, by the name that a configuration uses."""


def _head(zero: bool, head: Linear) -> Linear:
    return jax.tree.map(jnp.zeros_like, head) if zero else head
