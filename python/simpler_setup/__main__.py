"""`python -m simpler_setup ...`: the command `simpler`."""

import sys

from .command import main

sys.exit(main())
