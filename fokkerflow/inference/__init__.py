"""From data to conclusions."""

from fokkerflow.inference.likelihood import Transitions, log_likelihood, log_likelihoods, transitions

__all__ = ["Transitions", "log_likelihood", "log_likelihoods", "transitions"]
