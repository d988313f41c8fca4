"""The pages of nightly checks: reports, findings, histories and renamed kernels."""
