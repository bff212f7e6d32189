"""What a worker is told to do, checked, and spelled for a process that it starts."""

from __future__ import annotations

from dataclasses import dataclass

from django_alkstore.conf import Settings

MOST = 1_000
"""How many threads or processes may be asked for; more than that is a slip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """
    One worker's options. Durations are seconds, ``max_memory`` is megabytes.

    ``queues`` and ``exclude`` are names, or beginnings of names that end in ``*``.
    """

    database: str
    queues: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    threads: int = 4
    processes: int = 1
    prefetch: int = 64
    batch: bool = False
    max_jobs: int | None = None
    max_memory: int | None = None
    shutdown_timeout: float = 30.0
    poll_interval: float = 1.0
    worker_ttl: float = 60.0

    @classmethod
    def build(
        cls,
        settings: Settings,
        *,
        database: str,
        queues: str | None = None,
        exclude: str | None = None,
        threads: int | None = None,
        processes: int | None = None,
        batch: bool = False,
        max_jobs: int | None = None,
        max_memory: int | None = None,
        shutdown_timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> WorkerOptions:
        """
        Return options as given on a command line; the settings fill in for None.

        Raise ValueError, naming the option, for one that makes no sense.
        """
        options = cls(
            database=database,
            queues=_names(queues, "--queues"),
            exclude=_names(exclude, "--exclude"),
            threads=settings.threads if threads is None else threads,
            processes=settings.processes if processes is None else processes,
            prefetch=settings.prefetch,
            batch=batch,
            max_jobs=max_jobs,
            max_memory=max_memory,
            shutdown_timeout=settings.shutdown_timeout
            if shutdown_timeout is None
            else shutdown_timeout,
            poll_interval=settings.poll_interval
            if poll_interval is None
            else poll_interval,
            worker_ttl=settings.worker_ttl,
        )
        for name in ("threads", "processes", "max_jobs", "max_memory"):
            value = getattr(options, name)
            if value is not None and value < 1:
                raise ValueError(f"{_flag(name)} must be 1 or more, not {value}")
        for name in ("threads", "processes"):
            if getattr(options, name) > MOST:
                raise ValueError(f"{_flag(name)} must be {MOST} or fewer")
        # "Not at least" instead of "less than", because NaN is neither.
        if not options.shutdown_timeout >= 0:
            raise ValueError("--shutdown-timeout must be 0 or more")
        if not options.poll_interval > 0:
            raise ValueError("--poll-interval must be more than 0")
        return options

    def arguments(self) -> list[str]:
        """
        Return the command line of one process of these, as the supervisor starts it.
        """
        arguments = [
            "--database", self.database,
            "--processes", "1",
            "--threads", str(self.threads),
            "--shutdown-timeout", repr(self.shutdown_timeout),
            "--poll-interval", repr(self.poll_interval),
        ]  # fmt: skip
        # With the equals sign, because a queue's name may begin with a dash.
        if self.queues:
            arguments.append(f"--queues={','.join(self.queues)}")
        if self.exclude:
            arguments.append(f"--exclude={','.join(self.exclude)}")
        if self.batch:
            arguments.append("--batch")
        if self.max_jobs is not None:
            arguments += ["--max-jobs", str(self.max_jobs)]
        if self.max_memory is not None:
            arguments += ["--max-memory", str(self.max_memory)]
        return arguments


def _names(text: str | None, flag: str) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError(f"{flag} has an empty name in {text!r}")
    return names


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
