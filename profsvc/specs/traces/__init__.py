"""What goes on in traces: categories of the wall time, and the names that belong to them."""
