"""What does a Heston log likelihood of 349 transitions cost, trained and exact, with its gradient and in bulk?

    taskset -c 0,1 python benchmarks/likelihood.py [--record]

Times are the best of many. `floor` counts the transcendental functions in one transition of the trained density, as they stand
in the program that JAX compiles: what no rearrangement removes. One or two minutes.
"""

from __future__ import annotations

import collections
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from recording import best_seconds, run

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fokkerflow.densities import Density, Surrogate, density, load, pretrained, train  # noqa: E402
from fokkerflow.inference.likelihood import Transitions, total, transitions  # noqa: E402
from fokkerflow.sde.models import Heston  # noqa: E402
from fokkerflow.sde.simulate import simulate  # noqa: E402

DT, ROWS, BULK, DRAWS = 0.5, 350, 20_000, 64
TRANSCENDENTAL = {"exp", "log", "log1p", "expm1", "tanh", "logistic", "erf", "erfc", "sin", "cos", "sqrt", "pow", "asinh"}


def trained_heston() -> tuple[str, Surrogate]:
    """The density that ships, with its name; without one, half a minute of training over the paper's law."""
    if "heston" in pretrained():
        return "heston", load("heston")
    return "trained here, preset fast", train(Heston(), "paper", DT, preset="fast")


def milliseconds(function: Any, *arguments: Any, repeats: int = 100) -> float:
    return round(1e3 * best_seconds(function, *arguments, repeats=repeats), 4)


def cost(of: Density, series: Any, long: Any) -> dict[str, Any]:
    data, bulk = transitions(of.sde, series), transitions(of.sde, long)
    p = jnp.array([of.sde.typical[name] for name in of.sde.parameters])
    many = jnp.tile(p, (DRAWS, 1)) * jnp.linspace(0.98, 1.02, DRAWS)[:, None]
    value = jax.jit(lambda p, data: total(of, data, p))
    gradient = jax.jit(jax.value_and_grad(lambda p, data: total(of, data, p)))
    chains = jax.jit(jax.vmap(jax.value_and_grad(lambda p, data: total(of, data, p)), in_axes=(0, None)))
    by_draw = jax.jit(lambda many, data: jax.lax.map(lambda p: total(of, data, p), many, batch_size=8))
    return {
        "log_likelihood_ms": milliseconds(value, p, data),
        "with_gradient_ms": milliseconds(gradient, p, data),
        "with_gradient_four_chains_ms": milliseconds(chains, many[:4], data),
        "transitions_per_second_long_series": round(BULK / best_seconds(value, p, bulk, repeats=10)),
        "transitions_per_second_many_draws": round((ROWS - 1) * DRAWS / best_seconds(by_draw, many, data, repeats=10)),
    }


def floor(of: Density, data: Transitions) -> dict[str, int]:
    """Transcendental functions that depend on the transition, counted per row."""
    rows = data.x1.shape[0]
    p = jnp.array([of.sde.typical[name] for name in of.sde.parameters])
    found: collections.Counter[str] = collections.Counter()

    def count(jaxpr: Any) -> None:
        for equation in jaxpr.eqns:
            for inner in jax.core.jaxprs_in_params(equation.params):
                count(inner)
            if equation.primitive.name in TRANSCENDENTAL:
                size = equation.outvars[0].aval.size
                found[equation.primitive.name] += size // rows if size >= rows else 0

    count(jax.make_jaxpr(lambda p: total(of, data, p))(p).jaxpr)
    return dict(found) | {"all": sum(found.values())}


def measure() -> dict[str, Any]:
    series = simulate(Heston(), Heston.typical, dt=DT, n=ROWS, burn_in=ROWS, seed=1)
    long = simulate(Heston(), Heston.typical, dt=DT, n=BULK + 1, burn_in=ROWS, substeps=20, seed=2)
    name, trained = trained_heston()
    exact = density("exact", Heston())
    answer = {"trained": cost(trained, series, long), "exact": cost(exact, series, long)}
    counts = floor(trained, transitions(Heston(), series))
    return {"density": name, "transitions": ROWS - 1, **answer, "floor": counts}


if __name__ == "__main__":
    run("likelihood", __doc__, measure)
