"""What commands share: options, output, the terminal, and exit codes."""
