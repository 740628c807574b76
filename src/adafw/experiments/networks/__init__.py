"""Experiments that train networks: the same files, runs and reports, measured epoch by epoch."""
