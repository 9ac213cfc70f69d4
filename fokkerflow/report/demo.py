"""The demonstration: simulated Heston data, its exact likelihood along each parameter, and a picture of both."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

from fokkerflow.densities import density
from fokkerflow.inference.likelihood import log_likelihood
from fokkerflow.inference.slices import slices
from fokkerflow.report.figures import likelihood_figure
from fokkerflow.sde import Heston, simulate


def run(out: Path, seed: int) -> None:
    """Write ``heston.csv`` and ``likelihood.png`` into `out`, and print what was found."""
    console, sde = Console(), Heston()
    out.mkdir(parents=True, exist_ok=True)

    series = simulate(sde, sde.typical, dt=0.5, n=350, substeps=100, burn_in=350, seed=seed)
    series.to_csv(out / "heston.csv")
    console.print(f"Simulated {len(series)} half-yearly observations of {', '.join(series.names)}.")

    exact = density("exact", sde)
    log_likelihood(exact, series, sde.typical)
    started = perf_counter()
    value = float(log_likelihood(exact, series, sde.typical))
    console.print(f"Exact log likelihood at the true parameters: {value:.6f} ({1e3 * (perf_counter() - started):.1f} ms).")

    curves = slices(exact, series, sde.typical)
    table = Table("parameter", "true value", "largest at", "95 % of the slice", title="Likelihood along each parameter")
    for curve in curves:
        low, high = curve.interval
        table.add_row(curve.parameter, f"{curve.through:g}", f"{curve.maximiser:.4g}", f"{low:.4g} to {high:.4g}")
    console.print(table)

    figure = likelihood_figure(series, curves, sde.typical, "Heston: simulated data and the exact likelihood")
    figure.savefig(out / "likelihood.png")
    console.print(f"Data and picture are in {out}: heston.csv, likelihood.png")
