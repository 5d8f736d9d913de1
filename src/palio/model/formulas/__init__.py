"""Formulas: what is computed from the attributes of one event, for conditions that no sets of values can say."""
