"""Configurations: JSON, numbers of weights, what is refused, and what the two starts are."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from configurations import CONFIGURATIONS, KEY, MLP, built, small_anchored
from scipy import stats

from fokkerflow.flow.chart import Identity, Log, Power
from fokkerflow.flow.conditioner import GRU
from fokkerflow.flow.config import Coordinate, FlowConfig, Network
from fokkerflow.flow.dirac_start import DiracStart
from fokkerflow.flow.flow import build_flow, weights
from fokkerflow.flow.lamperti import Lamperti
from fokkerflow.flow.presets import anchored, paper
from fokkerflow.flow.reference import TruncatedGamma, Uniform
from fokkerflow.flow.sampling import approximate_draw, base_dimension, sample
from fokkerflow.sde.models import BDFS, CIR, OU, SVCEV, DoubleWell, Heston, SeasonalOU
from fokkerflow.sde.probing import sample_parameters, sample_states

BOX = ((0, 3), (-6.5, 6.5))


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_json_round_trip(name):
    flow = built(name)
    again = FlowConfig.from_dict(json.loads(json.dumps(flow.config.to_dict())))
    assert again == flow.config
    skeleton = jax.eval_shape(lambda key: build_flow(key, flow.sde, again, flow.standardisation), KEY)
    assert jax.tree.structure(skeleton) == jax.tree.structure(flow)


def test_the_paper_counts_of_weights():
    """6756 is the paper's number for SVCEV; the other two are what the same formula gives (the paper prints 8448 and 14448)."""
    svcev = paper(KEY, SVCEV(), BOX, layers=5, components=4, width=5, depth=4)
    heston = paper(KEY, Heston(), BOX)
    bdfs = paper(
        KEY, BDFS(), ((0, 2), (-3, 3), (-3, 3)), layers=(4, 4, 5), components=5, width=(6, 6, 8), depth=4,
        parents=((), (), (0, 1)),
    )  # fmt: skip
    assert [weights(f)[0].size for f in (svcev, heston, bdfs)] == [6756, 8328, 15150]
    trained = paper(KEY, SVCEV(), BOX, layers=5, components=4, width=5, depth=4, trainable_reference=True)
    assert weights(trained)[0].size == 6757


def test_weights_round_trip_and_leave_the_standardisation_alone():
    flow = small_anchored(CIR())
    theta, with_weights = weights(flow)
    moved = with_weights(theta + 1.0)
    assert np.array_equal(weights(moved)[0], theta + 1.0)
    assert np.array_equal(moved.standardisation.centre, flow.standardisation.centre)
    assert theta.dtype == np.float64


def test_gru_is_pytorchs():
    """The recursion of torch.nn.GRU written out in NumPy, with the hidden state that is zero."""
    network = GRU(KEY, 4, 6, width=3, depth=2)
    x = np.array([0.3, -1.0, 2.0, 0.1])
    h = x
    for cell in network.cells:
        gi = np.asarray(cell.input_weight) @ h + np.asarray(cell.input_bias)
        gh = np.asarray(cell.hidden_weight) @ np.zeros(3) + np.asarray(cell.hidden_bias)
        r, z = (1 / (1 + np.exp(-(gi[s] + gh[s]))) for s in (slice(0, 3), slice(3, 6)))
        n = np.tanh(gi[6:] + r * gh[6:])
        h = (1 - z) * n + z * np.zeros(3)
    assert np.allclose(network(jnp.asarray(x)), np.asarray(network.head.weight) @ h + np.asarray(network.head.bias), rtol=1e-13)


@pytest.mark.parametrize("width", [pytest.param(1e-2, marks=pytest.mark.slow), 1e-4])
def test_dirac_start_concentrates_at_x0(width):
    """With the weights as they are built, the standard deviation is of the size of the width, in units of half the box."""
    x0, p = jnp.array([0.4]), jnp.array([0.1, 3.0, 0.25])
    flow = paper(KEY, CIR(), ((0, 3),), layers=3, components=3, width=4, start_width=width)
    condition = flow.condition(0.0, 0.1, x0, p)
    x = (np.asarray(sample(jax.random.key(1), flow, condition, 300)) - 0.4) / (1.5 * width)
    assert np.max(np.abs(x)) < 7
    assert 0.3 < x.std() < 1.5
    exponent = -0.5 * (0.5 / 1.5 / width) ** 2  # what the Dirac layer makes of a distance 0.5, to a few per cent
    assert 0.95 < eqx.filter_jit(flow.log_density)(x0 + 0.5, condition) / exponent < 1.3


def test_approximate_draws_are_exact_for_one_layer_and_a_uniform_reference():
    flow = small_anchored(DoubleWell())
    condition = flow.condition(0.0, 0.3, jnp.array([0.1]), jnp.array([1.0, 0.7]))
    x = sample(jax.random.key(1), flow, condition, 2000, method="approximate")
    u = np.asarray(jax.vmap(lambda x: flow.rosenblatt(x, condition))(x))
    assert stats.kstest(u[:, 0], "uniform").pvalue > 1e-4
    base = jax.random.uniform(jax.random.key(2), (500, base_dimension(flow)))
    wide, narrow = (jax.jit(jax.vmap(lambda b, k=k: approximate_draw(flow, b, condition, spread=k)))(base) for k in (4.0, 1.0))
    assert 2.5 < wide.std() / narrow.std() < 4.5
    with pytest.raises(ValueError, match=r"Got base of shape \(3,\), expected \(2,\)"):
        approximate_draw(flow, jnp.zeros(3), condition)
    with pytest.raises(ValueError, match="Got method='fast', expected 'exact' or 'approximate'"):
        sample(KEY, flow, condition, 3, method="fast")


@pytest.mark.parametrize(
    ("sde", "states", "parameters", "time"),
    [
        (Heston(), (0,), (0, 1, 2, 4), False),
        (OU(), (), (0, 2), False),
        (SeasonalOU(), (), (0, 4), False),
        (DoubleWell(), (0,), (0, 1), False),
        (BDFS(), (0,), (0, 1, 2, 3, 5, 6, 7), False),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_inputs_that_only_shift_the_mean_are_left_out(sde, states, parameters, time):
    start = small_anchored(sde).config.start
    assert (start.states, start.parameters, start.time) == (states, parameters, time)


def _one(chart, reference, start=DiracStart(), parents=()):  # noqa: B008  frozen data
    return FlowConfig((Coordinate(chart, (2,), parents, reference, MLP),), start)


def test_wrong_configurations_name_the_culprit():
    with pytest.raises(
        ValueError, match=r"CIR, state 'v': with a power chart and a uniform reference the density does not vanish"
    ):
        build_flow(KEY, CIR(), _one(Power(), Uniform()))
    with pytest.raises(ValueError, match="does not vanish at the boundary 0"):
        build_flow(KEY, CIR(), _one(Power(0.0, 0.3), TruncatedGamma()))
    with pytest.raises(ValueError, match="lamperti chart is scaled by moments; use it with the anchored start"):
        build_flow(KEY, CIR(), _one(Lamperti(), Uniform()))
    with pytest.raises(ValueError, match=r"identity chart of \(-inf, inf\) does not fit the domain \(0, inf\)"):
        build_flow(KEY, CIR(), _one(Identity(), Uniform()))
    with pytest.raises(ValueError, match=r"log chart of \(0, inf\) does not fit the domain \(-inf, inf\)"):
        build_flow(KEY, OU(), _one(Log(), Uniform()))
    with pytest.raises(ValueError, match=r"got parents \(0,\), expected increasing numbers"):
        build_flow(KEY, OU(), _one(Identity(), Uniform(), parents=(0,)))
    with pytest.raises(ValueError, match=r"Heston has 2 states \(v, y\), got a configuration of 1"):
        build_flow(KEY, Heston(), _one(Log(), Uniform()))
    with pytest.raises(ValueError, match="Got conditioner 'lstm'; expected one of gru, mlp"):
        Network("lstm")
    with pytest.raises(ValueError, match="at least one layer"):
        paper(KEY, CIR(), ((0, 1),), layers=1)
    with pytest.raises(ValueError, match="expected a sequence of one entry for each of v, y"):
        paper(KEY, Heston(), ((0, 3),))
    data = _one(Log(), Uniform()).to_dict()
    data["coordinates"][0]["chart"]["kind"] = "polar"
    with pytest.raises(ValueError, match="Got chart 'polar'; expected one of identity, affine"):
        FlowConfig.from_dict(data)
    with pytest.raises(ValueError, match="Not the configuration of a flow: 'start'"):
        FlowConfig.from_dict({"coordinates": []})


def test_anchored_refuses_conditions_without_moments():
    sde = CIR()
    x0, p = sample_states(sde, 8), sample_parameters(sde, 8)
    tau = np.full(8, 0.1)
    p[3, 2] = np.nan
    with pytest.raises(ValueError, match="moments at condition 3 are not finite"):
        anchored(KEY, sde, 0.5, jnp.asarray(x0), jnp.asarray(p), jnp.asarray(tau))


def test_works_in_single_precision_mode():
    with jax.enable_x64(False):
        flow = small_anchored(CIR())
        condition = flow.condition(0.0, 0.1, np.array([0.1]), np.array([0.1, 3.0, 0.25]))
        value = flow.log_density(np.array([0.12]), condition)
        x = sample(jax.random.key(0), flow, condition, 3)
    assert value.dtype == np.float64
    assert x.dtype == np.float64
