"""Adapters that bring jobs to whoever runs them, and call them when they are due."""
