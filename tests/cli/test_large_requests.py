"""What is left of a large request that was coming when a broker was killed: nothing."""

import socket

from tests.broker.gateway.files import nameless
from tests.cli.processes import await_condition, broker_up


def test_nothing_is_left_of_what_was_coming_when_a_broker_is_killed(tmp_path, environment):
    data = tmp_path / "palio-data"
    with broker_up("--http", "127.0.0.1:0", environment=environment, folder=tmp_path) as (process, said):
        port = said["http_port"]
        with socket.create_connection(("127.0.0.1", port)) as connection:
            head = f"POST /documents HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/xml\r\n"
            names = {one.name for one in data.iterdir()}
            connection.sendall(f"{head}Content-Length: 2000000\r\n\r\n".encode() + b"x" * 1_000_000)
            await_condition(
                lambda: [one for one in nameless(process.pid) if one.startswith(str(data))], process
            )
            process.kill()
            process.wait()
        # What the store has may come and go.
        assert {one.name for one in data.iterdir() if not one.name.startswith("palio.db")} <= names
