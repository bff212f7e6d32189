"""The same site for each engine: ``--ds=tests.settings.sqlite``, ``.postgresql``."""
