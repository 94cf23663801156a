from __future__ import annotations

import pytest

from ledger.prices import cost_usd, priced, rates_of

MILLION = {"input": 10**6, "output": 0, "cache_read": 0, "cache_write": 0}


def usage(**more: object) -> dict[str, object]:
    return {"input_tokens": 5, "cost_usd": None, "unpriced": {}, **more}


def test_a_model_of_the_price_list_costs_its_base_rate_however_many_tokens() -> None:
    once = cost_usd("claude-sonnet-4-5", MILLION)
    assert once is not None
    assert once > 0
    assert cost_usd("claude-sonnet-4-5", {**MILLION, "input": 3 * 10**6}) == pytest.approx(3 * once)


def test_output_costs_more_and_the_cache_less_than_input() -> None:
    rates = rates_of("claude-sonnet-4-5")
    assert rates is not None
    assert rates.cache_read < rates.input < rates.cache_write < rates.output


@pytest.mark.parametrize("name", ["openai/gpt-5", "router/openai/gpt-5", "somewhere/gpt-5"])
def test_a_model_may_stand_behind_its_provider(name: str) -> None:
    assert rates_of(name) == rates_of("gpt-5") is not None


@pytest.mark.parametrize("name", ["", "/", "no such model", "claude-test-1", "x" * 5000, "<synthetic>"])
def test_an_unknown_model_has_no_price(name: str) -> None:
    assert cost_usd(name, MILLION) is None


def test_what_was_reported_and_what_was_computed_add_up() -> None:
    found = priced(usage(cost_usd=0.5, unpriced={"gpt-5": MILLION, "house-model": MILLION, "": MILLION}))
    assert found["cost_usd"] == pytest.approx(0.5 + (cost_usd("gpt-5", MILLION) or 0))
    assert (found["cost_estimated"], found["unpriced_models"]) == (True, ["house-model", ""])
    assert found["input_tokens"] == 5
    assert "unpriced" not in found


def test_without_any_price_the_cost_stays_unknown() -> None:
    found = priced(usage(unpriced={"house-model": MILLION}))
    assert (found["cost_usd"], found["cost_estimated"], found["unpriced_models"]) == (None, False, ["house-model"])
    assert priced(usage())["cost_usd"] is None
