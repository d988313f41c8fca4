"""From the metrics of a tool to counters: mapping, expressions, vocabulary, what collects them."""
