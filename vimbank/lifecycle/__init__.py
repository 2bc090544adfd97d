"""The flow around the decisions of ``domain.lifecycle``: read how memories stand, decide, say what goes when."""
