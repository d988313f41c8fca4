"""Which kernel of one run is which of another: names that match, kernels that changed, and renamed ones."""
