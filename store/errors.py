"""The errors a user may see. Each is one clear sentence and carries the exit code of the command that meets it."""

from __future__ import annotations


class HeadraceError(Exception):
    """A failure with a message fit for a user: what was wrong, where, and the remedy. Exit code 1."""

    exit_code = 1


class ConfigError(HeadraceError):
    """The configuration or the arguments are wrong; raised before any work starts. Exit code 2."""

    exit_code = 2


class CheckFailed(HeadraceError):
    """A check or a budget said no: quarantine limit, verification, conservation. Exit code 3."""

    exit_code = 3


class StoreError(HeadraceError):
    """The store cannot be read or written: full disk, no permission, damaged artefact. Exit code 1."""
