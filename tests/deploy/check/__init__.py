"""The parts of check.py."""
