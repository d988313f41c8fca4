"""Change from run to run: nightly series and verdicts, kernels that match and that changed."""
