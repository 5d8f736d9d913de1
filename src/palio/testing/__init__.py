"""Networks for tests: real brokers on the loopback interface, which keep nothing on disk.

    async with palio.testing.broker() as address, palio.connect(address) as client:
        …

They run in the event loop of the test, on ports of their own, and are gone at its end. A broker with a
`journal` keeps it in memory: it can be stopped, crash and start again, and everything that would be on disk is
there. With a `Clock`, hours pass when the test says so. `network` links several of them.
"""

from palio.testing.broker import Broker, broker
from palio.testing.clock import Clock
from palio.testing.network import Network, network

__all__ = ["Broker", "Clock", "Network", "broker", "network"]
