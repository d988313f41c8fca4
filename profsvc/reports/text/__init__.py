"""What a terminal shows: one module per page of the command line."""
