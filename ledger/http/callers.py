"""Who calls, and what he sent: how most handlers begin."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request

from ledger.errors import TooLarge
from ledger.http.auth import OWNER, READER, Caller, require
from ledger.http.services import Services, services

FORM_BYTES_MAX = 64 * 2**10


async def reader(request: Request) -> Services:
    """The services, for somebody who may read. Raises Unauthenticated, Forbidden."""
    at = services(request)
    require(await at.access.caller(request), READER)
    return at


async def owner_with_body(request: Request) -> tuple[Services, Caller, bytes]:
    """An owner's request to the API, and its body. Raises Unauthenticated, Forbidden, and what refuses a body."""
    at = services(request)
    caller = await at.access.writer(request)
    async with at.admission.body(request) as body:
        return at, caller, body


async def owner_with_form(request: Request, bytes_max: int = FORM_BYTES_MAX) -> tuple[Services, Caller, FormData]:
    """What an owner sent from a form of ours. Raises Unauthenticated, Forbidden, TooLarge."""
    at = services(request)
    caller = await at.access.caller(request)
    form = await form_of(request, bytes_max)
    at.access.check_csrf(caller, str(form.get("csrf", "")))
    require(caller, OWNER)
    return at, caller, form


async def form_of(request: Request, bytes_max: int = FORM_BYTES_MAX) -> FormData:
    """Raises TooLarge."""
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > bytes_max:
        raise TooLarge(f"a form has a stated length of at most {bytes_max} bytes")
    return await request.form(max_files=0, max_fields=10)
