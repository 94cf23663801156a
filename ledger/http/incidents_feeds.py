"""Incidents as feeds, for readers of news: GET /incidents.json and GET /incidents.atom.

Forms: JSON Feed 1.1, https://www.jsonfeed.org/version/1.1/ · Atom, RFC 4287.

A reader that cannot log in at a page sends its token in the Authorization header: as Bearer, or, since most know
nothing else, as the password of Basic with any name. A token in the address is not taken: addresses end up in logs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ledger.errors import Unauthenticated
from ledger.http import problems
from ledger.http.agent_text import plain
from ledger.http.auth import READER, Caller, require
from ledger.http.incidents import latest
from ledger.http.services import Services, services

ENTRIES_MAX = 50
SESSIONS_NAMED_MAX = 20
TITLE = "Incidents"
AUTHOR = "ledgerd sweep"
JSON_FEED, ATOM = "application/feed+json", "application/atom+xml"

_CHALLENGE = 'Bearer, Basic realm="ledgerd", charset="UTF-8"'
_NAMESPACE = "http://www.w3.org/2005/Atom"
_BEFORE_ALL = "1970-01-01T00:00:00Z"  # a feed says when it last changed, one that is empty too
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Json = Mapping[str, Any]


async def incidents_json(request: Request) -> Response:
    return await _feed(request, JSON_FEED, json_feed)


async def incidents_atom(request: Request) -> Response:
    return await _feed(request, ATOM, atom)


def json_feed(incidents: Sequence[Json], base: str, ledger_id: str) -> bytes:
    """`incidents` as `projections.incidents_views.item` tells them, the newest first; `base` is the server's address
    without a slash at its end."""
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": TITLE,
        "home_page_url": f"{base}/incidents",
        "feed_url": f"{base}/incidents.json",
        "authors": [{"name": AUTHOR}],
        "items": [
            {
                "id": _id(ledger_id, one["id"]),
                "url": _url(base, one),
                "title": _title(one),
                "content_text": _content(one),
                "date_published": one["filed_at"],
                "date_modified": one["updated_at"],
                "tags": _tags(one),
            }
            for one in incidents
        ],
    }
    return msgspec.json.encode(feed)


def atom(incidents: Sequence[Json], base: str, ledger_id: str) -> bytes:
    """As `json_feed`. All texts are of type `text`: nothing that an agent wrote is markup."""
    feed = ElementTree.Element("feed", xmlns=_NAMESPACE)
    _add(feed, "title", TITLE)
    _add(feed, "id", _id(ledger_id, ""))
    _add(feed, "updated", max((one["updated_at"] for one in incidents), default=_BEFORE_ALL))
    _add(_add(feed, "author"), "name", AUTHOR)
    _add(feed, "link", rel="self", type=ATOM, href=f"{base}/incidents.atom")
    _add(feed, "link", rel="alternate", type="text/html", href=f"{base}/incidents")
    for one in incidents:
        entry = _add(feed, "entry")
        _add(entry, "title", _title(one), type="text")
        _add(entry, "id", _id(ledger_id, one["id"]))
        _add(entry, "published", one["filed_at"])
        _add(entry, "updated", one["updated_at"])
        _add(entry, "link", rel="alternate", type="text/html", href=_url(base, one))
        for tag in _tags(one):
            _add(entry, "category", term=tag)
        _add(entry, "content", _content(one), type="text")
    ElementTree.indent(feed)
    return bytes(ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True))


async def _feed(request: Request, media: str, made: Callable[[Sequence[Json], str, str], bytes]) -> Response:
    at = services(request)
    try:
        require(await _caller(request, at), READER)
    except Unauthenticated as error:
        return problems.answer(request, problems.problem_of(error), {"WWW-Authenticate": _CHALLENGE})
    body = made(await latest(at, ENTRIES_MAX), str(request.base_url).rstrip("/"), at.store.ledger_id)
    headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"', "Cache-Control": "private, no-cache"}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media, headers=headers)


async def _caller(request: Request, at: Services) -> Caller:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return await at.access.caller(request)
    try:
        _, _, token = base64.b64decode(given.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise Unauthenticated("the Authorization header of the Basic scheme cannot be read") from error
    return await at.access.bearer(token.strip())


def _id(ledger_id: str, incident_id: str) -> str:
    """The same for ever, whatever address the ledger is read at."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"ledgerd:{ledger_id}/incidents/{incident_id}").urn


def _url(base: str, one: Json) -> str:
    return f"{base}/incidents/{one['id']}"


def _title(one: Json) -> str:
    title = " ".join(plain(one["title"]).split()) or f"Incident {one['id']}"
    return f"{one['severity']}: {title}"


def _tags(one: Json) -> list[str]:
    return [tag for tag in (one["severity"], plain(one["category"]).strip(), one["status"]) if tag]


def _content(one: Json) -> str:
    parts = [
        (label, plain(one[name]).strip())
        for label, name in (("What", "what"), ("Cost", "cost"), ("Lesson", "lesson"))
    ]
    lines = [f"{label}: {said}" for label, said in parts if said]
    times = "" if one["times"] == 1 else f", {one['times']} times, last on {one['last_date']}"
    lines.append(f"Happened on {one['date']}{times}. Now {one['status']}.")
    named = [_named(session) for session in one["sessions"][:SESSIONS_NAMED_MAX]]
    if len(named) < one["session_count"]:
        named.append(f"and {one['session_count'] - len(named)} more")
    return "\n\n".join([*lines, *(["Sessions: " + ", ".join(named)] if named else [])])


def _named(session: Json) -> str:
    return plain(session["session_id"] or f"{session['source']} {session['key']}")


def _add(parent: ElementTree.Element, tag: str, text: str | None = None, **attributes: str) -> ElementTree.Element:
    """Adds an element. What no XML 1.0 may hold becomes U+FFFD."""
    fit = {name: _NOT_IN_XML.sub("\ufffd", value) for name, value in attributes.items()}
    element = ElementTree.SubElement(parent, tag, fit)
    if text is not None:
        element.text = _NOT_IN_XML.sub("\ufffd", text)
    return element
