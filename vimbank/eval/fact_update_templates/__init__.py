"""Sentences in which people tell facts and that they changed, for the generated set of fact updates."""
