"""A database server that can be taken away: a TCP relay in front of the real one."""

from __future__ import annotations

import socket
import threading


class Relay:
    """
    Listens on a port of its own; while it is down, connections break or are refused.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.accepted = 0
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]

    def up(self) -> None:
        """Accept connections."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self._listener = listener
        threading.Thread(target=self._accept, args=[listener], daemon=True).start()

    def down(self) -> None:
        """Refuse new connections and break those there are."""
        if self._listener is not None:
            # Without it the thread that accepts would keep the port open.
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            _end(each)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self.accepted += 1
            with self._lock:
                self._sockets |= {near, far}
            for pair in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    _end(source)
    _end(sink)


def _end(each: socket.socket) -> None:
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    each.close()
