"""The sections of a report: each makes its blocks from the contents."""
