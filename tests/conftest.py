from __future__ import annotations

from hypothesis import settings

settings.register_profile(
    "ledgerd", print_blob=True, deadline=None
)  # a failure can be repeated, a slow machine is none
settings.load_profile("ledgerd")
