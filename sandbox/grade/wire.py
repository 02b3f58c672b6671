"""Messages between the grader and the process that runs a learner's code: one JSON value a line over a socket."""

from __future__ import annotations

import json
import socket
from typing import Any

LONGEST = 1 << 20  # bytes of one message; a learner's code may send anything


class Wire:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = b""

    def send(self, message: dict[str, Any]) -> None:
        self.sock.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any] | None:
        """The next message; None when the other side is gone. Raises TimeoutError, and ValueError for nonsense."""
        while b"\n" not in self._buffer:
            if len(self._buffer) > LONGEST:
                raise ValueError("a message without an end")
            data = self.sock.recv(1 << 16)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError("a message that is not an object")
        return message
