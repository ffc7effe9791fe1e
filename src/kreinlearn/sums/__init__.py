"""Sums over rows that do not depend on threads or memory: fixed tiles, added in a fixed tree."""
