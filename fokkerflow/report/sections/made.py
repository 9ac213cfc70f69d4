"""The section about how the results were made, so that they can be made again."""

from __future__ import annotations

import json
from typing import Any

from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.report.contents import Contents
from fokkerflow.report.page import Block, Section
from fokkerflow.report.words import duration, interval_text, listed


def made_section(contents: Contents) -> Section:
    """Command, seed, versions, density, prior, time spent."""
    attrs, record = contents.idata.posterior.attrs, contents.record
    facts = [
        ("Model", _model(contents)),
        ("Constraints", "; ".join(c.text for c in contents.sde.constraints) or "none"),
        ("Prior", attrs.get("prior", "")),
        ("Sampler", _sampler(contents)),
        ("Seed", str(attrs.get("seed", ""))),
        ("Density", _density(contents)),
        ("Data", listed([_file(file) for file in record.get("data", ())])),
        ("Time", _times(record.get("seconds", {}) or {"sampling": attrs.get("seconds")})),
        ("Versions", _versions(attrs.get("versions", ""))),
    ]
    blocks = [Block("facts", [(name, value) for name, value in facts if value])]
    if record.get("command"):
        blocks.insert(0, Block("code", record["command"]))
    return Section("made", "How it was made", tuple(blocks))


def _model(contents: Contents) -> str:
    states = ", ".join(f"{name} in {interval_text(domain)}" for name, domain in contents.sde.states.items())
    return f"{contents.sde.label}, {states}"


def _sampler(contents: Contents) -> str:
    posterior = contents.idata.posterior
    lengths = f"{posterior.sizes['chain']} chains of {posterior.sizes['draw']} draws"
    return f"{posterior.attrs.get('sampler', '?')}, {lengths} after {posterior.attrs.get('warmup', '?')} of warm-up"


def _density(contents: Contents) -> str:
    name = contents.name or type(contents.density).__name__
    if not isinstance(contents.density, Surrogate):
        return name
    trained = contents.density.trained
    record, gaps = trained.record, trained.gaps
    return (
        f"{name}: trained by {record.method}, preset {record.preset}, seed {record.seed}, for gaps of {gaps.shortest:g} to "
        f"{gaps.longest:g}, in {duration(record.seconds)}, by fokkerflow {record.versions.get('fokkerflow', '?')}"
    )


def _file(file: Any) -> str:
    return f"{file['path']} (SHA-256 {file['sha256'][:12]}…)"


def _times(seconds: Any) -> str:
    return ", ".join(f"{stage} {duration(float(value))}" for stage, value in seconds.items() if value is not None)


def _versions(versions: Any) -> str:
    try:
        found = json.loads(versions) if isinstance(versions, str) else dict(versions)
    except ValueError:
        return str(versions)
    return ", ".join(f"{name} {version}" for name, version in found.items())
