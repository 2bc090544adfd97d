"""Adapters of MemoryStore and AccessLog."""
