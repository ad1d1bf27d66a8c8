"""What slow clients and bombs cost those who behave."""
