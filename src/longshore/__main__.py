"""`python -m longshore` runs the command line."""

from longshore.cli import main

main()
