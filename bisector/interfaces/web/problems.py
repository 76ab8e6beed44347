"""Errors as problem documents (RFC 9457), with the words, the cure and the exit code of the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.requests import Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from bisector.errors import ExitCode, KernelError, NotFound, PerfbisectError, RecordsAway, RequestError
from bisector.model.format import plain
from bisector.model.printable import printable, printable_json
from bisector.schemas.documents.document import key_text
from bisector.schemas.refusal import WORDS

MEDIA_TYPE = "application/problem+json"
_AWAY_SECONDS = 30
"""When a client may ask again after a database server did not answer. Chosen: a host that starts takes longer
than the answer has waited."""
_MOST_PROBLEMS = 10
"""Problems of one request that are named: chosen, since one with more was meant for another program."""


class Refused(RequestError):
    """A request that its sender may not make, or not now. status: of the answer."""

    def __init__(
        self, status: HTTPStatus, message: str, *, cure: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """headers: of the answer."""
        super().__init__(message, cure=cure)
        self.status, self.headers = status, dict(headers or {})
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self.exit_code = ExitCode.INFRASTRUCTURE


Form = Callable[[Request, PerfbisectError, Response], Response]
"""The answer to a request that failed: the error's page, or the problem document that it is given."""


class Defect(PerfbisectError):
    """An exception that nobody expected."""


def handle_errors(app: FastAPI, form: Form) -> None:
    """Let every error become a problem document, or what a form makes of it."""

    def answering(error_of: Callable[[Exception], PerfbisectError]) -> Callable[..., Awaitable[Response]]:
        async def handle(request: Request, error: Exception) -> Response:
            found = error_of(error)
            return form(request, found, response_of(found))

        return handle

    app.add_exception_handler(PerfbisectError, answering(_as_it_is))
    app.add_exception_handler(RequestValidationError, answering(_of_a_wrong_request))
    app.add_exception_handler(HTTPException, answering(_of_http))
    app.add_exception_handler(Exception, answering(_of_a_defect))


def response_of(error: PerfbisectError) -> Response:
    """Return the answer for an error."""
    headers: dict[str, str] = {}
    if isinstance(error, Refused):
        status, headers = error.status, error.headers
    elif isinstance(error, Defect):
        status = HTTPStatus.INTERNAL_SERVER_ERROR
    elif isinstance(error, NotFound):
        status = HTTPStatus.NOT_FOUND
    elif isinstance(error, RequestError | KernelError):
        status = HTTPStatus.BAD_REQUEST
    else:
        status = HTTPStatus.SERVICE_UNAVAILABLE
        headers = {"Retry-After": str(_AWAY_SECONDS)} if isinstance(error, RecordsAway) else {}
    document = {"type": "about:blank", "title": status.phrase, "status": status.value, **document_of(error)}
    return Response(printable_json(document), status.value, headers, media_type=MEDIA_TYPE)


def document_of(error: PerfbisectError) -> dict[str, Any]:
    """Return what the command line would print of an error, and its exit code."""
    return {
        "detail": printable(error.message),
        "details": printable(error.details),
        "cure": printable(error.cure),
        "exit_code": int(error.exit_code),
    }


def refused(status: HTTPStatus, headers: Mapping[str, str] | None = None) -> Refused:
    """Return the error of a request that the framework refuses."""
    message, cure = _MESSAGES.get(status, (status.phrase.lower(), "see /api/v1/openapi.json"))
    return Refused(status, message, cure=cure, headers=headers)


def _as_it_is(error: Exception) -> PerfbisectError:
    assert isinstance(error, PerfbisectError)
    return error


def _of_a_wrong_request(error: Exception) -> PerfbisectError:
    assert isinstance(error, RequestValidationError)
    return wrong_fields(error.errors())


def wrong_fields(found: Sequence[Any]) -> RequestError:
    """Return what is wrong in the fields of a request. found: pydantic's list, places from 'body' on."""
    problems = [_words(one) for one in found[:_MOST_PROBLEMS]]
    cure = "the fields and their bounds are in /api/v1/openapi.json"
    return RequestError(problems[0], details="\n".join(problems[1:]), cure=cure)


def _words(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    """Return what is wrong in one field in our words; the value is not repeated."""
    if error["type"] == "json_invalid":  # its place is no field
        return f"the body is no JSON from character {error['loc'][-1] + 1} on"
    where = key_text(tuple(map(str, error["loc"][1:]))) or "the body"
    if isinstance(error.get("input"), bytes):  # unread: curl's --data says it is a form
        return "the body must be JSON, with the header 'Content-Type: application/json'"
    raised = error.get("ctx", {}).get("error")
    if error["type"] == "value_error":
        return f"{where}: {raised}"
    context = error.get("ctx", {}).items()
    limits = {name: plain(limit) if isinstance(limit, int | float) else limit for name, limit in context}
    return f"{where}: {WORDS.get(error['type'], 'is not understood').format_map(limits)}"


def _of_http(error: Exception) -> PerfbisectError:
    assert isinstance(error, HTTPException)
    return refused(HTTPStatus(error.status_code), error.headers)


_MESSAGES = {
    HTTPStatus.NOT_FOUND: ("there is no such address", "the addresses are in /api/v1/openapi.json"),
    HTTPStatus.METHOD_NOT_ALLOWED: ("this address does not take that method", "see /api/v1/openapi.json"),
    HTTPStatus.BAD_REQUEST: ("the body cannot be read", "send JSON in UTF-8, not nested deeply"),
    HTTPStatus.REQUEST_TIMEOUT: ("the body did not arrive in time", "send it at once"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("the body is too large", "send less; see docs/reference/api.md"),
}
"""Texts for errors that the framework finds."""


def _of_a_defect(error: Exception) -> PerfbisectError:
    message = f"perfbisect itself failed: {type(error).__name__}"
    return Defect(message, cure="the server's log shows where; please report that")  # uvicorn logs it
