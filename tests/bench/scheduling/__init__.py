"""The acceptance lines of docket's scheduling, each measured through the running binary."""
