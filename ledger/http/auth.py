"""Who is calling: bearer tokens for programs, a signed cookie for people at a browser."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

import msgspec
from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from ledger.errors import Forbidden, InvalidField, NotFound, Unauthenticated
from ledger.store.base import Store, Token

OWNER, READER, SADDLE = "owner", "reader", "saddle"
ROLES = (OWNER, READER, SADDLE)
COOKIE = "ledgerd"
COOKIE_AGE_S_MAX = 7 * 24 * 3600
_KNOWN_FOR_S, _UNKNOWN_FOR_S = 10.0, 0.1


class Caller(msgspec.Struct, frozen=True):
    """Somebody whose token was accepted. `csrf` is set for those who came with a cookie."""

    role: str
    name: str
    token_id: str
    csrf: str | None = None

    @property
    def saddle(self) -> str:
        """The saddle that this caller writes as: an owner is the saddle named `owner`."""
        return OWNER if self.role == OWNER else self.name


def token_hash(token: str) -> bytes:
    """SHA-256: tokens are 256 random bits, so nothing slower is needed to keep them."""
    return hashlib.sha256(token.encode()).digest()


class Access:
    """The tokens of one store. `secret` signs cookies; the same on all servers of a ledger."""

    def __init__(self, store: Store, clock: Callable[[], int], secret: bytes) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._cookies = URLSafeTimedSerializer(secret, salt="ledgerd cookie")
        self._by_hash: dict[bytes, Token] = {}
        self._by_id: dict[str, Token] = {}
        self._loaded_at = float("-inf")
        self._looking = asyncio.Lock()

    async def caller(self, connection: HTTPConnection) -> Caller:
        """Raises Unauthenticated where neither header nor cookie names a token in force."""
        header = connection.headers.get("authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            if scheme.lower() != "bearer":
                raise Unauthenticated("the Authorization header is not of the Bearer scheme")
            return await self.bearer(token.strip())
        if COOKIE in connection.cookies:
            return await self._visitor(connection.cookies[COOKIE])
        raise Unauthenticated("no token was sent")

    async def writer(self, request: Request, *roles: str) -> Caller:
        """Who changes something through the API; an owner may do all. A browser sends its cookie without being asked,
        so who comes with one shows the CSRF token too, in X-CSRF-Token. Raises Unauthenticated, Forbidden."""
        caller = await self.caller(request)
        require(caller, *roles)
        if caller.csrf is not None:
            self.check_csrf(caller, request.headers.get("x-csrf-token", ""))
        return caller

    async def bearer(self, token: str) -> Caller:
        digest = token_hash(token)
        await self._refresh(digest in self._by_hash)
        return self._in_force(self._by_hash.get(digest))

    async def _visitor(self, cookie: str) -> Caller:
        try:
            token_id, nonce = self._cookies.loads(cookie, max_age=COOKIE_AGE_S_MAX)
        except (BadSignature, ValueError, TypeError) as error:
            raise Unauthenticated("the login has run out", hint="Log in again.") from error
        await self._refresh(token_id in self._by_id)
        caller = self._in_force(self._by_id.get(token_id))
        return msgspec.structs.replace(caller, csrf=self._csrf(nonce))

    def _in_force(self, token: Token | None) -> Caller:
        if token is None:
            raise Unauthenticated("the token is unknown")
        if token.revoked_at is not None:
            raise Unauthenticated("the token was revoked")
        if token.expires_at is not None and token.expires_at <= self._clock():
            raise Unauthenticated("the token has expired")
        return Caller(token.role, token.name, token.id)

    def login(self, caller: Caller, response: Response, *, secure: bool) -> None:
        cookie = self._cookies.dumps([caller.token_id, secrets.token_hex(16)])
        response.set_cookie(
            COOKIE, cookie, max_age=COOKIE_AGE_S_MAX, httponly=True, samesite="lax", secure=secure, path="/"
        )

    def check_csrf(self, caller: Caller, sent: str) -> None:
        """Raises Forbidden unless what was sent came from a page that this caller was given."""
        if caller.csrf is None or not hmac.compare_digest(caller.csrf.encode(), sent.encode()):
            raise Forbidden("no valid CSRF token came with it", hint="Load the page again and repeat.")

    def _csrf(self, nonce: str) -> str:
        return hmac.new(self._secret, f"csrf {nonce}".encode(), hashlib.sha256).hexdigest()

    # Managing tokens

    async def _refresh(self, known: bool) -> None:
        """Reads the tokens anew where one is unknown that another server may have made a moment ago, and now and then
        where it is known, for another server may have revoked it. However many guess, they share a few queries."""
        if known:
            if time.monotonic() - self._loaded_at > _KNOWN_FOR_S:
                await self.reload()
            return
        asked_at = time.monotonic()
        async with self._looking:
            if self._loaded_at < asked_at:
                await asyncio.sleep(self._loaded_at + _UNKNOWN_FOR_S - time.monotonic())
                await self.reload()

    async def reload(self) -> None:
        self._loaded_at = time.monotonic()
        tokens = await self._store.tokens()
        self._by_hash = {token.hash: token for token in tokens}
        self._by_id = {token.id: token for token in tokens}

    async def mint(
        self, role: str, name: str, expires_at: int | None = None, token: str | None = None
    ) -> tuple[Token, str]:
        """Keeps a new token, and gives it with its text, which nobody can read again. Raises InvalidField."""
        if role not in ROLES:
            raise InvalidField("role", f"{role!r} is none of {', '.join(ROLES)}")
        if not 1 <= len(name) <= 200 or not name.isprintable():
            raise InvalidField("name", "a name has 1 to 200 printable characters")
        if role == SADDLE and name == OWNER:
            raise InvalidField("name", "a saddle cannot be named `owner`: an owner's own saddle is")
        token = token or f"ld_{role}_{secrets.token_urlsafe(32)}"
        kept = Token(secrets.token_hex(8), role, name, token_hash(token), self._clock(), expires_at)
        await self._store.put_token(kept)
        await self.reload()
        return kept, token

    async def revoke(self, token_id: str) -> None:
        for token in await self._store.tokens():
            if token.id == token_id:
                if token.revoked_at is None:
                    await self._store.put_token(msgspec.structs.replace(token, revoked_at=self._clock()))
                await self.reload()
                return
        raise NotFound(f"no token {token_id!r}", hint="GET /api/tokens lists them.")


def require(caller: Caller, *roles: str) -> None:
    """Raises Forbidden unless the caller has one of the roles; an owner may do all."""
    if caller.role != OWNER and caller.role not in roles:
        raise Forbidden(f"a {caller.role} may not do this; it takes {' or '.join(roles or (OWNER,))}")
