"""Pure values and formulas: standard library, numpy and the stemmer; no I/O, no clock, no settings."""
