"""What all parts of the configuration have in common."""

from typing import dataclass_transform

import msgspec

API_VERSION = "kubescheduler.config.k8s.io/v1"


# Tells type checkers what msgspec does anyway: subclasses are frozen too.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """Part of a configuration: as in the file outside, snake case inside."""
