"""What a core has, as data: the one place that names instruction sets.

The file of a family has a table of its cores; `find.py` looks a name up. Another core of a family is a line, another
family a file and its name in `find.py`. Everything else takes the record, and nobody reads its name.
"""
