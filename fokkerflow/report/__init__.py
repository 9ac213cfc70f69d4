"""Tables and figures."""

from fokkerflow.report.figures import likelihood_figure

__all__ = ["likelihood_figure"]
