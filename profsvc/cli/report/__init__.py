"""``report``: accuracy of predictions, nightly reports, and their removal."""
