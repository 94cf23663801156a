"""Every sample of the corpus: what should be a candidate is one, what only looks like it is none."""

from __future__ import annotations

import pytest

from tests.corpus.damage import FAMILIES, samples
from tests.unit.daemons.sweep.prefilter.told import told


@pytest.mark.parametrize("family", FAMILIES)
def test_damage_is_a_candidate_by_its_rule_and_by_no_other(family: str) -> None:
    found = {sample.text: told(sample).rules() for sample in samples(family, damage=True)}
    assert found == {sample.text: [sample.rule] for sample in samples(family, damage=True)}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_only_looks_like_damage_is_none(family: str) -> None:
    found = {sample.text: told(sample).rules() for sample in samples(family, damage=False)}
    assert found == {text: [] for text in found}
    assert len(found) > 5
