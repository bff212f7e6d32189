"""
The life of a job, as one manager: each step is a method, in the file that names it.

    storing.py    enqueue                 none -> pending or scheduled
    claiming.py   claim                   pending, due or lapsed -> processing
    settling.py   ack retry fail snooze release cancel    processing -> ...
    looking.py    get_job stats           nothing changes

    scheduled --due--> pending --claim--> processing --ack--> gone, or a result
        ^                 ^                  |  |
        |                 +---release, lapse-+  +--fail, retry spent--> dead
        +-------------------retry, snooze----+       (requeue: a new pending job)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_alkstore.managers.claiming import Claiming
from django_alkstore.managers.looking import Looking
from django_alkstore.managers.settling import Settling
from django_alkstore.managers.storing import Storing

if TYPE_CHECKING:
    from django_alkstore.models import LiveJob


class LiveJobManager(
    Storing["LiveJob"], Claiming["LiveJob"], Settling["LiveJob"], Looking["LiveJob"]
):
    """
    ``LiveJob.objects``.

    Every method joins the caller's transaction if there is one.
    """
