"""The parts of every page: its visitor, a template with its values, the same as JSON and CSV.

A page is a function from a `View` to a `Page`. `add_page` answers three addresses with it.
"""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import APIRouter, Depends
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from bisector.app.operations.local_operations import LocalOperations
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.interfaces.web.authority import Server
from bisector.interfaces.web.problems import wrong_fields
from bisector.interfaces.web.static_files import static_files
from bisector.interfaces.web.visitors import Operating, Reading, Visitor
from bisector.model.access import Role, may
from bisector.model.printable import printable, printable_json
from bisector.report.html import page_assets
from bisector.schemas.loading import Spec

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_SEE_OTHER = 303
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 50
"""Fields of a form that are read; ours have about five."""
_FORMULA = ("=", "+", "-", "@", "\t")
"""Text that begins so is a formula to spreadsheet programs, whoever wrote it."""
NAVIGATION = (
    ("/", "Overview"),
    ("/bisections", "Bisections"),
    ("/queue", "Queue"),
    ("/testbeds", "Testbeds"),
    ("/compare", "Compare"),
    ("/costs", "Costs"),
    ("/series", "Series"),
    ("/alerts", "Alerts"),
    ("/outbox", "Outbox"),
)


@dataclass(frozen=True)
class View:
    """One look at a page."""

    request: Request
    visitor: Visitor

    @property
    def server(self) -> Server:
        """What all requests share."""
        return self.visitor.server

    @cached_property
    def wiring(self) -> Wiring:
        """The wiring of this look."""
        return self.server.wiring_for(self.visitor.user)

    @cached_property
    def operations(self) -> LocalOperations:
        """The operations, for who looks."""
        return LocalOperations(self.wiring, self.visitor.user.name)


Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Page:
    """values: as JSON; rows: as CSV, a mapping each; context: what the template shows; columns: the
    keys of rows, in words, where there may be none.

    Each of the first three may be a function, so that only what is asked for is made.
    """

    template: str
    title: str
    values: Any
    rows: Rows | Callable[[], Rows]
    context: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    columns: str = ""


def _reading(request: Request, visitor: Reading) -> View:
    return View(request, visitor)


def _operating(request: Request, visitor: Operating) -> View:
    return View(request, visitor)


Looking = Annotated[View, Depends(_reading)]
Changing = Annotated[View, Depends(_operating)]


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises RequestError: it has another type, or is not UTF-8."""
    kind = request.headers.get("content-type", _FORM).partition(";")[0].strip().lower()
    try:
        if kind != _FORM:
            raise ValueError(kind)
        text = (await request.body()).decode()
        return dict(
            parse_qsl(
                text,
                keep_blank_values=True,
                strict_parsing=bool(text),
                errors="strict",
                max_num_fields=_MOST_FIELDS,
            )
        )
    except ValueError as error:
        raise RequestError("the form cannot be read", cure="send it from a page of this server") from error


Fields = Annotated[dict[str, str], Depends(_fields)]


def drawing(view: View) -> AbstractContextManager[None]:
    """Return what holds a slot for what a page makes of bisections; entering raises Refused."""
    return view.server.drawings.one(view.visitor.user.name)


S = TypeVar("S", bound=Spec)


def checked(model: type[S], fields: Mapping[str, object]) -> S:
    """Return the fields of a form as a model of the API; texts are read as numbers. Raises RequestError."""
    try:
        return model.model_validate({k: v for k, v in fields.items() if k in model.model_fields})
    except ValidationError as error:
        raise wrong_fields([{**one, "loc": ("form", *one["loc"])} for one in error.errors()]) from error


def add_page(
    router: APIRouter, path: str, data_path: str = "", *, follows: bool = False
) -> Callable[[Callable[..., Page]], Callable[..., Page]]:
    """Return what registers a page at an address, and its data with the suffixes .json and .csv.

    data_path: for them, by default the same. follows: while it is open, a script shows what changes.
    """

    def register(build: Callable[..., Page]) -> Callable[..., Page]:
        for suffix, form in ((".json", _json), (".csv", _csv), ("", _html)):
            router.add_api_route(
                (data_path or path) + suffix if suffix else path,
                _answering(build, form, follows and form is _html),
                methods=["GET"],
                response_model=None,
            )
        return build

    return register


def _answering(
    build: Callable[..., Page], form: Callable[..., Response], follows: bool
) -> Callable[..., Response]:
    """Return what answers with a page in a form; it has the parameters of `build`, which FastAPI fills."""

    @functools.wraps(build)
    def answer(**values: Any) -> Response:  # noqa: ANN401
        view: View = values["view"]
        if not follows:
            return form(view, build(**values))
        revision = view.request.app.state.changes.now()  # before what it is the revision of
        return form(view, build(**values), revision=revision)

    return answer


def _evaluated(given: Any) -> Any:  # noqa: ANN401
    return given() if callable(given) else given


def _json(view: View, page: Page) -> Response:
    return Response(printable_json(_evaluated(page.values)) + "\n", media_type="application/json")


def _csv(view: View, page: Page) -> Response:
    return Response(
        csv_text(_evaluated(page.rows), page.columns.split()), media_type="text/csv; charset=utf-8"
    )


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Return rows of the same keys as CSV (RFC 4180); no cell is a formula to a spreadsheet program.

    A list, and what has keys of its own, is JSON in its cell. columns: the head where there are no rows.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(rows[0] if rows else columns)
    for row in rows:
        writer.writerow([_cell(value) for value in row.values()])
    return out.getvalue()


def _cell(value: Any) -> Any:  # noqa: ANN401
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping | list | tuple):
        text = json.dumps(value, ensure_ascii=False)
        return text if printable(text) == text else json.dumps(value)
    text = printable(str(value))
    return f"'{text}" if text.startswith(_FORMULA) else text


def _html(view: View, page: Page, revision: str = "") -> Response:
    return html_answer(
        view.request,
        page.template,
        view.visitor,
        title=page.title,
        revision=revision,
        **_evaluated(page.context),
    )


def html_answer(
    request: Request,
    template: str,
    visitor: Visitor | None,
    *,
    title: str,
    code: int = 200,
    revision: str = "",
    **context: Any,  # noqa: ANN401 - whatever it shows
) -> Response:
    """Return a page. visitor: None without a login; revision: of what it shows, if it follows."""
    user = visitor.user if visitor is not None else None

    def allowed(role: Role) -> bool:
        return user is not None and may(user.role, role)

    text = page_assets.render(
        template,
        "bisector.interfaces.web",
        title=title,
        revision=revision,
        path=request.url.path,
        query=request.url.query,
        navigation=NAVIGATION if user is not None else (),
        user=user,
        has_session=visitor is not None and visitor.session is not None,
        allowed=allowed,
        static=lambda name: static_files()[name].url,
        url=url,
        **context,
    )
    return HTMLResponse(text, code, {"Content-Security-Policy": _POLICY, "Referrer-Policy": "same-origin"})


def url(*parts: str, **query: Any) -> str:  # noqa: ANN401
    """Return the address of a page: its parts are names, whatever they hold."""
    asked = {name: value for name, value in query.items() if value not in (None, "")}
    return "/" + "/".join(quote(part, safe="") for part in parts) + (f"?{urlencode(asked)}" if asked else "")


def back_to(view: View, fields: Mapping[str, str], page: str) -> Response:
    """Return what leads a browser on from a form: to the address that the form names, else to `page`."""
    return RedirectResponse(own_address(fields.get("next", ""), page), _SEE_OTHER)


def own_address(text: str, otherwise: str = "/") -> str:
    """Return an address of this server as it was given; another one where it leads elsewhere."""
    fits = text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isprintable()
    return text if fits else otherwise
