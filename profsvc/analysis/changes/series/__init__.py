"""Results of runs as series: one value per night, their baselines, and what siblings say of them."""
