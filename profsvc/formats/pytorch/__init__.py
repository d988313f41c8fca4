"""Reader of the Kineto traces of PyTorch, and of XLA events in them."""
