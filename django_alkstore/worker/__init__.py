"""
The worker: claims jobs, runs them, and settles what became of them.

    worker.py    puts the parts together; the command calls it
    loop.py      the writer: claim -> hand out -> collect -> settle -> wait
    run.py       calls the task function; whatever happens becomes an Outcome
    settle.py    an Outcome becomes one of the manager's steps

``run`` and ``settle`` are used by ``django_alkstore.testing`` too, so that a job ends
in a test exactly as it does in a worker.
"""
