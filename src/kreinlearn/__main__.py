"""python -m kreinlearn"""

import sys

from kreinlearn.cli import main

if __name__ == "__main__":
    sys.exit(main())
