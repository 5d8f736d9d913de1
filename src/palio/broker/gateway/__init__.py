"""HTTP for everybody: publishing, event streams, subscriptions with webhooks, and `palio/2` over WebSocket.

Nothing here has a way of its own into the broker. A WebSocket is the transport of a `BrokerConnection`, and
whoever comes by HTTP is spoken for by a `Visitor`, who talks `palio/2` with a `BrokerConnection` in memory. So
greeting, rights, limits and the treatment of slow readers are the same as on every other port.
"""
