"""Tokens, roles and cookies, by an injected clock."""

from __future__ import annotations

import hashlib

import pytest
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from ledger.errors import Forbidden, InvalidField, NotFound, Unauthenticated
from ledger.http.auth import OWNER, READER, SADDLE, Access, Caller, require, token_hash
from ledger.store.memory import MemoryStore

SECOND_NS = 10**9


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000 * SECOND_NS

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(clock: Clock) -> Access:
    return Access(MemoryStore(clock), clock, b"secret")


def connection(**headers: str) -> Request:
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/api/x", "headers": named})


def cookie_of(access: Access, caller: Caller, *, secure: bool = False) -> str:
    response = Response()
    access.login(caller, response, secure=secure)
    return response.headers["set-cookie"]


async def test_a_token_is_known_by_its_hash_alone(clock: Clock) -> None:
    store = MemoryStore(clock)
    access = Access(store, clock, b"secret")
    kept, token = await access.mint(READER, "rita")
    assert kept.hash == token_hash(token) == hashlib.sha256(token.encode()).digest()
    assert all(token not in repr(stored) for stored in await store.tokens())
    assert await access.bearer(token) == Caller(READER, "rita", kept.id)


async def test_two_tokens_of_one_name_are_one_saddle(access: Access) -> None:
    _, old = await access.mint(SADDLE, "anvil")
    _, new = await access.mint(SADDLE, "anvil")
    assert old != new
    assert (await access.bearer(old)).saddle == (await access.bearer(new)).saddle == "anvil"


async def test_an_owner_of_any_name_is_the_saddle_named_owner(access: Access) -> None:
    _, token = await access.mint(OWNER, "olga")
    caller = await access.bearer(token)
    assert (caller.name, caller.saddle) == ("olga", OWNER)


async def test_a_token_is_in_force_until_the_moment_it_expires(access: Access, clock: Clock) -> None:
    _, token = await access.mint(READER, "rita", expires_at=clock.now + SECOND_NS)
    clock.now += SECOND_NS - 1
    await access.bearer(token)
    clock.now += 1
    with pytest.raises(Unauthenticated, match="expired"):
        await access.bearer(token)


async def test_a_revoked_token_is_out_of_force_at_once_and_keeps_its_first_moment(clock: Clock) -> None:
    store = MemoryStore(clock)
    access = Access(store, clock, b"secret")
    kept, token = await access.mint(READER, "rita")
    await access.revoke(kept.id)
    clock.now += SECOND_NS
    await access.revoke(kept.id)
    with pytest.raises(Unauthenticated, match="revoked"):
        await access.bearer(token)
    [stored] = await store.tokens()
    assert stored.revoked_at == clock.now - SECOND_NS
    with pytest.raises(NotFound):
        await access.revoke("none")


async def test_a_token_that_another_server_made_is_found(clock: Clock) -> None:
    store = MemoryStore(clock)
    one, other = (Access(store, clock, b"secret") for _ in range(2))
    _, token = await one.mint(READER, "rita")
    assert (await other.bearer(token)).name == "rita"


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("king", "x"),
        ("", "x"),
        (READER, ""),
        (READER, "x" * 201),
        (READER, "a\x00b"),
        (SADDLE, OWNER),
    ],
)
async def test_a_token_that_cannot_be_is_refused(access: Access, role: str, name: str) -> None:
    with pytest.raises(InvalidField):
        await access.mint(role, name)


@pytest.mark.parametrize("header", ["Basic x", "Bearer", "Bearer unknown", "Bearer  ", "é", "bearer \xff"])
async def test_a_header_that_names_no_token_is_refused(access: Access, header: str) -> None:
    with pytest.raises(Unauthenticated):
        await access.caller(connection(authorization=header))


async def test_the_scheme_may_be_written_in_any_case(access: Access) -> None:
    _, token = await access.mint(READER, "rita")
    assert (await access.caller(connection(authorization=f"bEARER  {token} "))).name == "rita"


async def test_a_header_counts_more_than_a_cookie(access: Access) -> None:
    kept, _ = await access.mint(OWNER, "olga")
    cookie = cookie_of(access, Caller(OWNER, "olga", kept.id)).partition(";")[0]
    with pytest.raises(Unauthenticated):
        await access.caller(connection(authorization="Bearer unknown", cookie=cookie))


async def test_a_cookie_names_its_token_and_carries_none(access: Access) -> None:
    kept, token = await access.mint(OWNER, "olga")
    header = cookie_of(access, await access.bearer(token), secure=True)
    assert token not in header
    attributes = {part.strip().lower() for part in header.split(";")[1:]}
    assert {"httponly", "samesite=lax", "secure", "path=/"} <= attributes
    caller = await access.caller(connection(cookie=header.partition(";")[0]))
    assert (caller.name, caller.token_id) == ("olga", kept.id)
    assert caller.csrf


async def test_a_cookie_of_another_secret_is_refused(access: Access, clock: Clock) -> None:
    kept, _ = await access.mint(OWNER, "olga")
    forger = Access(MemoryStore(clock), clock, b"another secret")
    cookie = cookie_of(forger, Caller(OWNER, "olga", kept.id)).partition(";")[0]
    with pytest.raises(Unauthenticated):
        await access.caller(connection(cookie=cookie))


async def test_a_change_that_comes_with_a_cookie_needs_its_own_csrf_token(access: Access) -> None:
    _, token = await access.mint(OWNER, "olga")
    caller = await access.bearer(token)
    one, other = (cookie_of(access, caller).partition(";")[0] for _ in range(2))
    mine = (await access.caller(connection(cookie=one))).csrf
    theirs = (await access.caller(connection(cookie=other))).csrf
    assert mine
    assert theirs
    assert mine != theirs
    assert (await access.writer(connection(cookie=one, x_csrf_token=mine))).name == "olga"
    for sent in ("", "é", theirs, mine[:-1], mine + "0"):
        with pytest.raises(Forbidden, match="CSRF"):
            await access.writer(connection(cookie=one, x_csrf_token=sent))
    with pytest.raises(Forbidden, match="CSRF"):
        await access.writer(connection(cookie=one))


async def test_a_bearer_needs_no_csrf_token(access: Access) -> None:
    _, token = await access.mint(SADDLE, "anvil")
    assert (await access.writer(connection(authorization=f"Bearer {token}"), SADDLE)).saddle == "anvil"


async def test_a_bearer_has_no_csrf_token_to_show_on_a_form(access: Access) -> None:
    _, token = await access.mint(OWNER, "olga")
    caller = await access.bearer(token)
    for sent in ("", "None"):
        with pytest.raises(Forbidden):
            access.check_csrf(caller, sent)


@pytest.mark.parametrize(
    ("role", "takes", "allowed"),
    [
        (OWNER, (), True),
        (OWNER, (SADDLE,), True),
        (OWNER, (READER,), True),
        (READER, (READER,), True),
        (READER, (SADDLE,), False),
        (READER, (), False),
        (SADDLE, (SADDLE,), True),
        (SADDLE, (READER,), False),
        (SADDLE, (), False),
    ],
)
def test_a_role_may_do_its_own_and_an_owner_all(role: str, takes: tuple[str, ...], allowed: bool) -> None:
    caller = Caller(role, "someone", "id")
    if allowed:
        require(caller, *takes)
        return
    with pytest.raises(Forbidden, match=role):
        require(caller, *takes)


async def test_who_sends_nothing_is_nobody(access: Access) -> None:
    with pytest.raises(Unauthenticated, match="no token"):
        await access.caller(HTTPConnection({"type": "http", "headers": []}))
