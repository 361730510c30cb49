"""`python -m longshore` is the command line."""

from longshore.cli import main

main()
