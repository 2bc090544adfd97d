"""Forgetting curves that need a library, and the choice among all of them."""
