"""Statements in English: sentences into clauses, clauses by their subject, predicates by what they tell of. Pure."""
