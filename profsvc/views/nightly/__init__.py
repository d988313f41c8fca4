"""The nightly report, its findings, and kernels that got another name."""
