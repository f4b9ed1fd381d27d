"""Profiles: bundle -> what each step of an inference costs.

`measure.py` is the entry; `table.py` has them for people, `document.py` for programs, `trace.py` on a time line.
"""
