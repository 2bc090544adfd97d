"""Bodies, parameters and answers of the REST interface: their fields, bounds and examples.

Bodies refuse fields they do not know and values of another JSON type. What needs the settings or the store (a bank's
name, the longest text) is checked by the service, so that it holds for every entry point.
"""
