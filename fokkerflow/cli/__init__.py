"""The command `fokkerflow`. Commands import what they need when they run, so that ``--help`` answers at once."""

from fokkerflow.cli import models  # noqa: I001  each adds its commands, in the order in which --help lists them
from fokkerflow.cli import infer
from fokkerflow.cli import reports
from fokkerflow.cli import profile
from fokkerflow.cli import compare
from fokkerflow.cli import calibrate
from fokkerflow.cli import training
from fokkerflow.cli import benchmark
from fokkerflow.cli import demo
from fokkerflow.cli.app import app

__all__ = ["app", "benchmark", "calibrate", "compare", "demo", "infer", "models", "profile", "reports", "training"]
