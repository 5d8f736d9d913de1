"""Shortcuts: branches that only save work ask whether they may be taken, so that a test can do without them."""

from __future__ import annotations

TAKEN = True  # nobody but a test says otherwise
