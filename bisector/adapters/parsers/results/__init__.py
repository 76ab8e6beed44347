"""Reading what other programs measured: `read` takes a file, a folder or standard input, in any form."""

from bisector.adapters.parsers.results.result_format import FORMS, read

__all__ = ["FORMS", "read"]
