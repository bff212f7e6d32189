"""A project's own settings never make Django want a migration of this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "AutoField": 'DEFAULT_AUTO_FIELD = "django.db.models.AutoField"',
    "SmallAutoField": 'DEFAULT_AUTO_FIELD = "django.db.models.SmallAutoField"',
    "local time in German": (
        'USE_TZ = False; TIME_ZONE = "Asia/Shanghai"; LANGUAGE_CODE = "de"'
    ),
    "ours": 'ALKSTORE = {"RETENTION": {"dead": 5}, "MAX_PAYLOAD_BYTES": 10, "INLINE": True}',
}


# What is compared is Python alone, so once is enough; the engine has no part in it.
@pytest.mark.sqlite_only
@pytest.mark.parametrize("name", SETTINGS)
def test_a_projects_settings_ask_for_no_migration(name: str, tmp_path: Path) -> None:
    """B118."""
    # In another process: models take these settings in when they are imported.
    (tmp_path / "project_settings.py").write_text(
        f"from {settings.SETTINGS_MODULE} import *\n{SETTINGS[name]}\n",
        encoding="utf-8",
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])

    done = subprocess.run(
        [sys.executable, "-m", "django", "makemigrations", "--check", "--dry-run",
         "django_alkstore", "--settings=project_settings"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "No changes" in done.stdout or "Keine" in done.stdout
