"""Power by component: the units and what counts as the rate of each."""
