"""Kernel values: the only room that evaluates a kernel."""
