"""The acceptance lines of decisio's abilities that need the running binary."""
