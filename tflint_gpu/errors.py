"""The one exception that reaches the user: a sentence that names what is wrong and what to do."""

from __future__ import annotations


class UserError(Exception):
    """The call, the configuration or the run failed; the command line prints the message and exits with 2."""
