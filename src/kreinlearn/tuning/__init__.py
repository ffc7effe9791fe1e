"""Penalties found by gradient on a cross-validated loss that does not see the map it judges."""
