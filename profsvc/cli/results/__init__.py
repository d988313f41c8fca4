"""Commands that show what the store has: runs, show, compare, history, graph, plot, sql, export."""
