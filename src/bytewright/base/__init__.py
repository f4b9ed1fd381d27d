"""What every room needs, and needs none: names of C, options, programs, files."""
