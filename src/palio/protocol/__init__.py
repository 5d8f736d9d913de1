"""The protocol is deterministic: no clock, no socket, no randomness.

Bytes, time and things to say go in; messages and bytes come out.

A connection carries frames (`frames`), each with one message (`encoding`). Clients and brokers speak the same
protocol. Who connects greets (`greeting`); after that

- a client sends requests (`requests`, `durable`, `inquiries`) and gets their answers, `Events` for its
  transient subscriptions and `Handed` for the durable ones (`deliveries`);
- neighbouring brokers exchange the messages between brokers (`peers`, `durable.peers`, `durable.letters`).

`vocabulary` says who may say what.
"""
