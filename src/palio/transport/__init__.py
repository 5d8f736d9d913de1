"""How bytes get from one program to another, in order: TCP, TLS, WebSocket, and memory.

Each is a file that knows how to dial (`interface`), to listen, or both. What is said is in `protocol`.
"""
