"""Experiments: many runs, their statistics, and a report that says what they support.

`definition` is what a TOML file can say and `checking` what it must not; `sweep` makes the list of runs,
`execution` and `cluster` make them, `results` keeps them; `statistics`, `claims` and `fits` look at them;
`plots` and `report` show them. `ready/` holds the experiments that come with Palio.
"""
