"""The documents of the program as frozen dataclasses, generated from its JSON Schemas.

Keys that have hyphens in JSON have underscores here (`steady-state` is `steady_state`), and a key
that is a word of Python has an underscore at its end (`from_`). A value that was not measured is
`None`, never zero. Units are in names (`duration_s`, `requests_per_s`) or stated by a `unit`.
"""
