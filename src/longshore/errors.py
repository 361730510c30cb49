"""The one exception that is meant for people: its text is a single line that says what to do."""


class UserError(Exception):
    """Something the user can put right. The command line prints it without a traceback and exits with 1."""
