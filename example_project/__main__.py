"""
Show the shop at work, or run one of its Django commands.

``python3 -m example_project`` is the demonstration; ``python3 -m example_project
runserver`` and so on are what manage.py does. Neither needs anything but Python.
"""

import os
import sys

from example_project import bootstrap

if __name__ == "__main__":
    bootstrap.enter("example_project")
    os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
    if len(sys.argv) > 1:
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    else:
        from example_project.demo import main

        sys.exit(main())
