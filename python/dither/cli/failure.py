"""How commands fail."""


class Failure(Exception):
    """The input or the machine is at fault: exit code 1."""


class UsageError(Exception):
    """The command line is at fault: exit code 2."""
