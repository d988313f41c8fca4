"""Memory hierarchy and the work of an average warp."""
