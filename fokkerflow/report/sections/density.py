"""The section about the transition density: the guard, the certificate, the comparison with a reference."""

from __future__ import annotations

from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.report.contents import Contents
from fokkerflow.report.page import Block, Section, Table
from fokkerflow.report.verdict import Answer
from fokkerflow.training.certificate import LEVELS, Certificate


def density_section(contents: Contents, answers: tuple[Answer, ...]) -> Section:
    """Whether the likelihood is that of the model."""
    blocks = [Block("answer", answer) for answer in answers]
    density = contents.density
    if isinstance(density, Surrogate):
        blocks.append(Block("heading", "Certificate"))
        certificate = density.certificate
        if certificate is None:
            blocks.append(Block("text", "There is none yet: 'fokkerflow certify' bounds the error over the training law."))
        else:
            blocks += [Block("text", _READING), Block("table", _certificate(certificate))]
    return Section("density", "Is the transition density right?", tuple(blocks), tuple(a.subject for a in answers))


_READING = (
    "For starting points and parameters drawn from the training law, a bound on the integrated absolute error of the density, "
    "which needs no reference. No probability of any event is wrong by more than half of it."
)


def _certificate(certificate: Certificate) -> Table:
    rows = [
        [f"{dt:.3g}", *(f"{quantiles[level]:.1e}" for level in LEVELS)]
        for dt, quantiles in zip(certificate.dt, certificate.quantiles, strict=True)
    ]
    caption = f"Bound on the L1 error, between 0 and 2, over {certificate.conditions} draws of the training law"
    return Table(caption, ["gap", *LEVELS], rows)
