from .baselines import best_matches as best_matches, matching_runs as matching_runs
from .local_store import LocalStore as LocalStore, connect as connect
from .results import Comparison as Comparison, Results as Results, Run as Run, open as open  # noqa: A004
