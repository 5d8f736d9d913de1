"""What is loaded when: who publishes an event does not wait for a broker, a match index or a simulator."""

import json
import subprocess
import sys

import pytest

_LOADED = "; import json, sys; print(json.dumps([one for one in sys.modules if one.split('.')[0] == 'palio']))"


def rooms(statement: str) -> set[str]:
    """The rooms of the house that a statement loads in a new interpreter."""
    found = subprocess.run(
        [sys.executable, "-c", statement + _LOADED], capture_output=True, text=True, check=True
    )
    return {".".join(one.split(".")[:2]) for one in json.loads(found.stdout)}


def test_the_package_loads_nothing_else_of_ours():
    assert rooms("import palio") == {"palio"}


def test_the_client_loads_model_protocol_and_transport_only():
    wanted = {"palio", "palio.client", "palio.model", "palio.protocol", "palio.transport"}
    assert rooms("import palio.client") == wanted
    assert rooms("import palio; palio.connect") == wanted


@pytest.mark.parametrize("name", ["Filter", "Notification", "Pattern", "PalioError"])
def test_the_model_comes_without_a_match_index(name):
    assert rooms(f"import palio; palio.{name}") == {"palio", "palio.model"}


def test_patterns_bring_matching():
    assert "palio.matching" in rooms("import palio; palio.Detection")


def test_the_help_of_the_program_loads_no_client():
    program = "import sys; sys.argv = ['palio', '--help']; from palio.cli.main import app"
    assert rooms(program) <= {"palio", "palio.cli", "palio.model"}


# Of `palio[broker]`, and of what else an executor of Spark's, or a test of somebody's, does not have.
_WEB = ("aiohttp", "h11", "lxml", "prometheus_client", "rich", "starlette", "typer", "uvicorn", "websockets")
_IN_A_TEST = """
import sys

sys.modules |= dict.fromkeys({missing}, None)
import palio.sync, palio.testing

with palio.testing.broker(journal=True) as address, palio.sync.connect(address) as client:
    print(client.publish({{"a": 1}}).origin)
"""


def test_a_broker_in_a_test_or_a_job_needs_no_web_server():
    program = [sys.executable, "-c", _IN_A_TEST.format(missing=_WEB)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout != "") == (0, True), done.stderr
