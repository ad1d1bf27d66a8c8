"""What tenants can and cannot do to, and learn of, each other on a running server."""
