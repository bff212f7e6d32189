"""The models, one table a file. Their managers hold what can be done with the rows."""

from django_alkstore.models.attempt import Attempt
from django_alkstore.models.dead_job import DeadJob
from django_alkstore.models.live_job import LiveJob
from django_alkstore.models.queue_state import QueueState
from django_alkstore.models.result import Result
from django_alkstore.models.worker import Worker

__all__ = ["Attempt", "DeadJob", "LiveJob", "QueueState", "Result", "Worker"]
