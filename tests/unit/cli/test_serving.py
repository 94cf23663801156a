from __future__ import annotations

from pathlib import Path

import pytest

from ledger.cli.serving import OWNER_TOKEN_FILE, _kept_token
from ledger.errors import StorageError


def test_the_owner_token_is_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/ledger.db"
    token = _kept_token(store)
    assert _kept_token(store) == token
    assert (tmp_path / OWNER_TOKEN_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("left", ["", "\n", "ld_owner_"])
def test_a_token_file_that_was_cut_short_lets_nobody_in(tmp_path: Path, left: str) -> None:
    (tmp_path / OWNER_TOKEN_FILE).write_text(left)
    with pytest.raises(StorageError, match="no whole token"):
        _kept_token(f"sqlite:///{tmp_path}/ledger.db")
