"""The acceptance lines of many dockets, each measured through the running binaries."""
