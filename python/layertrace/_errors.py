"""What goes wrong, and what to do about it."""


class Error(RuntimeError):
    """Something that layertrace was asked for could not be done.

    The message says all three; `tried`, `cause` and `remedy` (which may be empty) are its parts.
    """

    def __init__(self, tried: str, cause: str, remedy: str = "") -> None:
        super().__init__(f"{tried}: {cause}" + (f". {remedy}" if remedy else ""))
        self.tried = tried
        self.cause = cause
        self.remedy = remedy

    def __reduce__(self) -> tuple[type["Error"], tuple[str, str, str]]:
        return type(self), (self.tried, self.cause, self.remedy)


class UsageError(Error):
    """A command line that makes no sense, whatever the files hold."""


def exit_code(error: Error) -> int:
    """Of a command: 2 where it is the command line's fault, as where a name was given that nothing
    has; else 1."""
    is_unknown_name = error.cause in ("no such name", "no such column")
    return 2 if is_unknown_name or isinstance(error, UsageError) else 1


class LayertraceWarning(UserWarning):
    """Something could not be done, and the program goes on all the same."""
