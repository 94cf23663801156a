"""What tokens cost, for usage that was reported without its cost.

The price list is that of genai-prices (https://github.com/pydantic/genai-prices), as installed: nothing is fetched.
Prices are those of today at each model's base rate; what a provider adds for a very long prompt cannot be told from
sums. Prices are applied where a view is made, never in a fold, so a newer list needs no folding anew. The list is
loaded when it is first asked, since that takes as long as all else that a server loads before it listens.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

_SAMPLE_TOKENS = 1_000  # few enough for every base rate
_MODEL_CHARS_MAX = 200


class Rates(msgspec.Struct, frozen=True):
    """Dollars for one token. `input` is for what came neither from the cache nor went into it."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal


def cost_usd(model: str, tokens: Mapping[str, int]) -> float | None:
    """What `{input, output, cache_read, cache_write}` tokens of a model cost; None where its price is not known."""
    rates = rates_of(model)
    if rates is None:
        return None
    return float(sum(getattr(rates, name) * tokens[name] for name in rates.__struct_fields__))


def priced(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Usage as a projection gives it, its `unpriced` tokens turned into cost: `cost_usd` is what was reported and
    what was computed, `cost_estimated` says whether any of it was, `unpriced_models` names the models (an empty name
    where a report named none) whose tokens are in no cost."""
    costs = {model: cost_usd(model, tokens) for model, tokens in usage["unpriced"].items()}
    computed = [cost for cost in costs.values() if cost is not None]
    said = [] if usage["cost_usd"] is None else [usage["cost_usd"]]
    return {
        **{name: value for name, value in usage.items() if name != "unpriced"},
        "cost_usd": round(sum(said + computed), 9) if said or computed else None,
        "cost_estimated": bool(computed),
        "unpriced_models": [model for model, cost in costs.items() if cost is None],
    }


@lru_cache(maxsize=1000)
def rates_of(model: str) -> Rates | None:
    """The rates of a model by its name, bare (`claude-sonnet-4-5`) or behind its provider (`openai/gpt-5`)."""
    provider, _, bare = model.rpartition("/")
    if len(model) > _MODEL_CHARS_MAX:
        return None
    return _rates(model, None) or _rates(bare, provider.rpartition("/")[2]) or _rates(bare, None)


def _rates(model: str, provider: str | None) -> Rates | None:
    from genai_prices import Usage, calc_price

    def rate(**tokens: int) -> Decimal:
        found = calc_price(Usage(**tokens), model, provider_id=provider or None)
        return found.total_price / _SAMPLE_TOKENS

    if not model:
        return None
    try:
        return Rates(
            input=rate(input_tokens=_SAMPLE_TOKENS),
            output=rate(output_tokens=_SAMPLE_TOKENS),
            cache_read=rate(input_tokens=_SAMPLE_TOKENS, cache_read_tokens=_SAMPLE_TOKENS),
            cache_write=rate(input_tokens=_SAMPLE_TOKENS, cache_write_tokens=_SAMPLE_TOKENS),
        )
    except (LookupError, ValueError):  # not in the list, or listed without a price
        return None
