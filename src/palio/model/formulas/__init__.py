"""Formulas: what is computed from the attributes of an event, where no sets of values say what is meant."""
