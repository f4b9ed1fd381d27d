"""`python -m bytewright` is the command line."""

from bytewright.cli.main import main

main()
