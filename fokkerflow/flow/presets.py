"""The two settings of the flow: `paper`, as published, and `anchored`, the default of the package. For any SDE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from fokkerflow._precision import in_float64
from fokkerflow.flow.anchored_start import AnchoredStart
from fokkerflow.flow.chart import Affine, Chart
from fokkerflow.flow.config import Coordinate, FlowConfig, Network, check_config
from fokkerflow.flow.dirac_start import DiracStart
from fokkerflow.flow.flow import Flow, build_flow
from fokkerflow.flow.lamperti import automatic_chart
from fokkerflow.flow.reference import Reference, SymmetricBeta, TruncatedGamma, Uniform
from fokkerflow.flow.relevance import shape_inputs
from fokkerflow.flow.start import Standardisation
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import SDE

DEFAULT_NETWORK = Network("mlp", width=16, depth=2)

PerState = Any
"""One value for all states, or a sequence of one per state."""


@in_float64
def paper(
    key: PRNGKeyArray,
    sde: SDE,
    box: Sequence[tuple[float, float]],
    *,
    layers: int | Sequence[int] = 5,
    components: int | Sequence[int] = 7,
    width: int | Sequence[int] = 8,
    depth: int = 2,
    start_width: float = 1e-2,
    parents: Sequence[Sequence[int]] | None = None,
    trainable_reference: bool = False,
) -> Flow:
    """The flow of the paper: affine chart of a box, GRU conditioners, truncated-Gamma reference, Dirac start.

    theta belongs to one time tau, which is therefore no input; training moves theta in time (paper section 3).

    **Arguments:**

    - `key`: for the weights.
    - `sde`: the model.
    - `box`: (lower, upper) of every state, from the boundary on where the domain has one: ((0, 3), (-6.5, 6.5)) for Heston.
    - `layers`: the paper's L, which counts the affine layer; one number or one per state.
    - `components`: Gaussians in each mixture; one number or one per state.
    - `width`, `depth`: hidden size (one, or one per state) and number of stacked GRU cells.
    - `start_width`: the paper's epsilon-hat, in units of half the box.
    - `parents`: for each state the earlier ones that condition it; all by default.
      For BDFS ``((), (), (0, 1))``: v and o are independent.
    - `trainable_reference`: whether the shape of the reference is part of theta.

    **Returns:** a `Flow`. Its weights number, summed over states and layers l = 2..L,
    3h(i + h) + 6h + (depth - 1)(6h^2 + 6h) + 3G(h + 1), where i = parents + d + n parameters, + 1 for the time of a
    non-autonomous model. For SVCEV this gives the 6756 of the paper's table. For Heston it gives 8328 where the paper prints
    8448, for BDFS 15150 where it prints 14448; the text does not say what else differs.
    """
    coordinates = []
    for i, domain in enumerate(sde.domains):
        coordinates.append(
            Coordinate(
                chart=Affine(*(float(end) for end in _each(box, sde, i, "box", scalar=False))),
                components=(int(_each(components, sde, i, "components")),) * (int(_each(layers, sde, i, "layers")) - 1),
                parents=tuple(range(i)) if parents is None else tuple(_each(parents, sde, i, "parents", scalar=False)),
                reference=_vanishing_reference(domain, trainable_reference),
                network=Network("gru", int(_each(width, sde, i, "width")), depth),
            )
        )
    return build_flow(key, sde, FlowConfig(tuple(coordinates), DiracStart(start_width)))


@in_float64
def anchored(
    key: PRNGKeyArray,
    sde: SDE,
    max_dt: float,
    x0: Float[Array, "n d"],
    p: Float[Array, "n n_p"],
    tau: Float[Array, " n"],
    t0: Float[Array, " n"] | None = None,
    *,
    layers: int | Sequence[int] = 2,
    components: int | Sequence[int] = 6,
    network: Network | Sequence[Network] = DEFAULT_NETWORK,
    charts: Sequence[Chart | None] | None = None,
    references: Sequence[Reference | None] | None = None,
    parents: Sequence[Sequence[int]] | None = None,
    spread: float = 0.75,
) -> Flow:
    """The flow that starts at the moments of the process; tau is an input, and one theta serves every gap up to `max_dt`.

    **Arguments:**

    - `key`: for the weights.
    - `sde`: the model.
    - `max_dt`: the longest gap that the flow is for.
    - `x0`, `p`, `tau`, `t0`: conditions that the flow is meant for, some hundred or thousand of each, for instance draws from
      the training law. The features are standardised by them, and inputs that only shift the mean are found and left out.
    - `layers`: the paper's L, which counts the chart; 2 is one mixture layer.
    - `components`: Gaussians in each mixture.
    - `network`: the conditioners.
    - `charts`: per state; None is the automatic one (`identity`, `lamperti`).
    - `references`: per state; None is uniform where the chart has moved every boundary to infinity, else the law that vanishes
      there. The start is the Gaussian of the moments with a uniform reference, and is tilted by any other.
    - `parents`: for each state the earlier ones that condition it; all by default.
    - `spread`: of the means of the first mixture; see `AnchoredStart`.
    """
    coordinates = []
    for i, domain in enumerate(sde.domains):
        chart = (None if charts is None else _each(charts, sde, i, "charts", scalar=False)) or automatic_chart(domain)
        reference = None if references is None else _each(references, sde, i, "references", scalar=False)
        coordinates.append(
            Coordinate(
                chart=chart,
                components=(int(_each(components, sde, i, "components")),) * (int(_each(layers, sde, i, "layers")) - 1),
                parents=tuple(range(i)) if parents is None else tuple(_each(parents, sde, i, "parents", scalar=False)),
                reference=reference or (_vanishing_reference(domain, False) if _touches(chart, domain) else Uniform()),
                network=_each(network, sde, i, "network"),
            )
        )
    inputs = shape_inputs(sde, x0, p, t0)
    start = AnchoredStart(float(max_dt), spread, inputs.states, inputs.parameters, inputs.time)
    config = FlowConfig(tuple(coordinates), start)
    check_config(config, sde)
    return build_flow(key, sde, config, _standardisation(sde, config, x0, p, tau, t0))


def _standardisation(sde: SDE, config: FlowConfig, x0: Array, p: Array, tau: Array, t0: Array | None) -> Standardisation:
    """Mean and standard deviation of the features; a feature that is constant is only centred."""
    start = config.start
    if not isinstance(start, AnchoredStart):
        raise TypeError(f"Only an anchored start has features to standardise, got {start}.")
    t0 = jnp.zeros_like(tau) if t0 is None else t0
    features = jax.jit(jax.vmap(lambda t0, tau, x0, p: start.raw_features(sde, config.coordinates, t0, tau, x0, p)))(
        t0, tau, x0, p
    )
    bad = np.flatnonzero(~np.all(np.isfinite(features), axis=1))
    if bad.size:
        i = bad[0]
        raise ValueError(
            f"{sde.label}: the moments at condition {i} are not finite: x0={np.asarray(x0[i])}, p={np.asarray(p[i])}, "
            f"tau={float(tau[i]):g}. Expected states inside the domain, parameters inside their constraints and tau > 0."
        )
    centre, scale = jnp.mean(features, 0), jnp.std(features, 0)
    return Standardisation(centre, jnp.where(scale > 1e-9 * (1.0 + jnp.abs(centre)), scale, 1.0))


def _vanishing_reference(domain: Domain, trainable: bool) -> Reference:
    if domain.is_line:
        return Uniform()
    return TruncatedGamma(trainable=trainable) if domain.is_half_line else SymmetricBeta(trainable=trainable)


def _touches(chart: Chart, domain: Domain) -> bool:
    return min(chart.end_power(domain)) < float("inf")


def _each(value: PerState, sde: SDE, i: int, what: str, *, scalar: bool = True) -> Any:
    """The value for state i of an option that is one value for all states, or a sequence of one per state."""
    if scalar and not isinstance(value, Sequence):
        return value
    if not isinstance(value, Sequence) or len(value) != sde.dimension:
        raise ValueError(
            f"{sde.label}: got {what}={value!r}, expected a sequence of one entry for each of {', '.join(sde.states)}."
        )
    return value[i]
