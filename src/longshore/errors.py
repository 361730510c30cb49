"""The exception for errors that the user can correct."""


class UserError(Exception):
    """An error that the user can correct. Its text is one line: what is wrong, where, and what to do.

    The command line prints it without a traceback and exits with 1.
    """
