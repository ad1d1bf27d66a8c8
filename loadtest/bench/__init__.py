"""Experiments on a decision server with the load generator; `loadtest/run-all` runs them."""
