"""Where commands leave what they make if nobody says where; .gitignore has them too."""

from __future__ import annotations

from pathlib import Path

DEFAULT_REPORT = Path("palio-report.html")
DEFAULT_CHAOS_REPORT = Path("palio-chaos.html")
