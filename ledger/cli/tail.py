from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from ledger.cli.connecting import connect
from ledger.cli.output import console, moment, safe_json, status
from ledger.cli.terminal import one_line

if TYPE_CHECKING:
    from ledger.client.api import Api

PAGE_EVENTS = 500
RECONNECT_S = 1.0
TEXT_CHARS_MAX = 500


@click.command("tail")
@click.option("--from", "start", metavar="start|now|CURSOR", default="now", show_default=True, help="Where to begin.")
@click.option("--follow/--no-follow", default=True, help="Wait for more, or end at the end of the log.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line, as the API gives it.")
def command(start: str, follow: bool, as_json: bool) -> None:
    """Follow the log as it grows: every event once, in the order in which it was recorded.

    A server that stops is waited for; nothing is missed over a restart. Ctrl-C ends it.

    \b
    Example:
      ledgerd tail --from start --json --no-follow | jq .kind
    """
    out = console()
    with connect() as api, suppress(KeyboardInterrupt):
        for event in events(api, start, follow=follow):
            if as_json:
                click.echo(safe_json(event))
            elif out.is_terminal:
                out.print(line(event), overflow="ellipsis", no_wrap=True)
            else:
                click.echo(line(event).plain)


def events(api: Api, start: str, *, follow: bool) -> Iterator[dict[str, Any]]:
    """The log from `start` ("start", "now" or a cursor) on; with `follow` for ever, over restarts of the server."""
    from ledger.client.api import ApiError
    from ledger.client.live import cursors

    with closing(cursors(api)) as now:
        log = _Log(api, next(now) if start == "now" else None if start == "start" else start)
    yield from log.news()
    while follow:
        try:
            for _ in cursors(api, after=log.cursor):
                yield from log.news()
        except ApiError as error:
            if error.status is not None:
                raise
        time.sleep(RECONNECT_S)


class _Log:
    """The log, read up to `cursor`."""

    def __init__(self, api: Api, cursor: str | None) -> None:
        self._api = api
        self.cursor = cursor

    def news(self) -> Iterator[dict[str, Any]]:
        while True:
            page = self._api.events(after=self.cursor, limit=PAGE_EVENTS)
            yield from page["events"]
            self.cursor = page["cursor"]
            if len(page["events"]) < PAGE_EVENTS:
                return


def line(event: dict[str, Any]) -> Text:
    """One event as one line: when, who, what."""
    origin = f"{moment(event['at'] or event['recorded_at'])}  {one_line(event['session_id'])}  "
    return Text.assemble((origin, "dim"), status(event["kind"]), f"  {gist(event['payload'])}")


def gist(payload: Any) -> str:
    """What a payload says, in one line: its own words where it has any, else its JSON."""
    words = payload
    if isinstance(payload, dict):
        named = (payload.get(name) for name in ("body", "text", "question", "summary", "message", "title", "reason"))
        words = next((word for word in named if isinstance(word, str) and word), payload)
    said = words if isinstance(words, str) else safe_json(words)
    return one_line(said[:TEXT_CHARS_MAX])
