"""The watcher of a database that tells nobody of its commits."""

from __future__ import annotations

from django_alkstore.wake.watcher import Watcher


class PollWatcher(Watcher):
    """Never calls its subscribers and never dies: whoever waits looks by itself."""
