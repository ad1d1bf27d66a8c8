"""Parts of the side-by-side runs of docket's CPU engine against llama.cpp; start at ../peers.py."""
