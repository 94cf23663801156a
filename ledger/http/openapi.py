"""`/openapi.json`, made of the route table and the wire types, so that it cannot fall behind them.

Form: OpenAPI 3.1.0, https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from ledger import __version__
from ledger.http.problems import Problem
from ledger.http.routes import ANY, API, SCHEMES, Endpoint

_REF = "#/components/schemas/{name}"
_ERRORS = {
    "POST": ("400", "401", "403", "404", "409", "413", "415", "422", "429", "503"),
    "GET": ("401", "403", "404", "422", "503"),
    "DELETE": ("401", "403", "404", "503"),
}


@cache
def document() -> dict[str, Any]:
    types = {Problem}
    for endpoint in API:
        types |= {kind for kind in (endpoint.body, *endpoint.answers.values()) if kind}
    _, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in API:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ledgerd",
            "version": __version__,
            "description": "The exactly-once ledger for agent fleets",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": SCHEMES,
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint),
        "responses": {str(status): _good(endpoint, kind) for status, kind in endpoint.answers.items()},
    }
    if endpoint.who == ANY:
        operation["security"] = []
    else:
        operation["security"] = [{scheme: []} for scheme in endpoint.schemes]
        operation["x-role"] = endpoint.who
        problem = {"application/problem+json": {"schema": _ref(Problem)}}
        for status in _ERRORS[endpoint.method]:
            operation["responses"][status] = {"description": "See `code`.", "content": problem}
    if endpoint.body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": _ref(endpoint.body)}}}
    return operation


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    in_query = [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in endpoint.query.items()
    ]
    return in_path + in_query


def _good(endpoint: Endpoint, kind: Any) -> dict[str, Any]:
    if kind == "":
        return {"description": "Nothing to say."}
    schema = {"type": "object"} if kind is None else _ref(kind)
    if endpoint.media != "application/json":
        schema = {"type": "string"}
    return {"description": endpoint.summary, "content": {endpoint.media: {"schema": schema}}}


def _ref(kind: Any) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}
