"""
Jobs in a project's own tests: TestCase and TransactionTestCase, worker and helper.
"""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase

from django_alkstore.models import LiveJob
from django_alkstore.testing import run_jobs
from tests import tasks
from tests.models import Effect, Order


class InATestCase(TestCase):
    """Everything happens in the transaction of the test, which never commits."""

    def test_the_worker_command_names_the_helper_and_closes_nothing(self) -> None:
        """B163: one clear error; the connection of the test is still its own."""
        tasks.record.enqueue("a")
        held = connection.connection

        with pytest.raises(CommandError, match=r"run_jobs\(\)"):
            call_command("alkstore_worker", "--batch")

        self.assertIs(connection.connection, held)
        self.assertTrue(connection.in_atomic_block)
        self.assertEqual(LiveJob.objects.count(), 1)
        self.assertEqual(run_jobs().succeeded, 1)
        self.assertEqual(Effect.objects.get().key, "a")

    def test_a_job_is_there_at_once_without_any_capture(self) -> None:
        """B164: enqueue does not wait for a commit that never comes."""
        with transaction.atomic():
            job = tasks.record.enqueue("a")

        self.assertEqual(LiveJob.objects.get().pk, job.pk)
        self.assertEqual(run_jobs().succeeded, 1)

    def test_hooks_may_be_run_or_dropped(self) -> None:
        """B164: whatever hooks there are, they fail neither way."""
        with self.captureOnCommitCallbacks(execute=True) as ran, transaction.atomic():
            tasks.record.enqueue("a")
            tasks.record.enqueue_many([("b",), ("c",)])
        with self.captureOnCommitCallbacks() as dropped, transaction.atomic():
            tasks.record.enqueue("d")

        self.assertGreaterEqual(len(ran), len(dropped))
        self.assertEqual(run_jobs().succeeded, 4)

    def test_the_helper_runs_a_job_of_a_transaction_of_the_test(self) -> None:
        """B163: on the connection of the test, which stays as it is."""
        with transaction.atomic():
            order = Order.objects.create(number="1")
            tasks.notify.enqueue(order.pk)
        held = connection.connection

        run_jobs()

        order.refresh_from_db()
        self.assertTrue(order.notified)
        self.assertIs(connection.connection, held)

    def test_a_hook_is_run_by_the_capture(self) -> None:
        """B164: beside the job, which is there without it."""
        called: list[str] = []
        with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
            tasks.record.enqueue("a")
            transaction.on_commit(lambda: called.append("hook"))

        self.assertEqual(LiveJob.objects.count(), 1)
        self.assertEqual(called, ["hook"])
        self.assertEqual(run_jobs().succeeded, 1)


class InATransactionTestCase(TransactionTestCase):
    """The test commits, so that a worker sees its jobs."""

    available_apps = ["django_alkstore", "tests"]

    def test_the_worker_command_runs_what_is_due(self) -> None:
        """B163: in this process, and with the connection of the test left as it was."""
        tasks.record.enqueue("a")
        tasks.async_record.enqueue("b")
        held = connection.connection

        call_command("alkstore_worker", "--batch", "--verbosity", "0")

        self.assertIs(connection.connection, held)
        self.assertEqual({effect.key for effect in Effect.objects.all()}, {"a", "b"})
        self.assertFalse(LiveJob.objects.exists())
