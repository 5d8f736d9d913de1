"""Dependencies point up the house only."""

import subprocess
import sys
from pathlib import Path


def test_no_room_imports_from_below(root):
    program = Path(sys.executable).parent / "lint-imports"
    found = subprocess.run([program, "--no-cache"], cwd=root, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "4 kept, 0 broken" in found.stdout
