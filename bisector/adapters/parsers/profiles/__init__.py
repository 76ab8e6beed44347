"""Reading profiles: `read` takes a perf recording or what another profiler printed, in any form."""

from bisector.adapters.parsers.profiles.profile_format import FORMS, read

__all__ = ["FORMS", "read"]
