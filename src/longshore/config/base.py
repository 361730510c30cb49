"""The base of all parts of a configuration."""

from typing import dataclass_transform

import msgspec

API_VERSION = "kubescheduler.config.k8s.io/v1"


# This tells type checkers what msgspec does anyway: subclasses are frozen too.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a configuration, whose fields are in camel case in the file and in snake case here."""
