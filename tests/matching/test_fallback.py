"""Without the compiled core the package works, with one warning."""

import subprocess
import sys

PROGRAM = """
import sys, warnings
sys.modules["palio.matching.core"] = None  # as if it had not been built
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import palio
    import palio.matching
    index = palio.MatchIndex([("sub-1", 'symbol = "ACME" and price > 100')])
    index.add("sub-2", "price < 5")
print(len([one for one in caught if "compiled match index" in str(one.message)]))
print(index.match(palio.Notification({"symbol": "ACME", "price": 101.5})))
"""


def test_it_works_without_the_core():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["1", "['sub-1']"]
