"""Names of the generated C that link, before anything is stored."""
