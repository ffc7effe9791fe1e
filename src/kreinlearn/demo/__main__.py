"""python -m kreinlearn.demo"""

import sys

from kreinlearn.demo.command import main

if __name__ == "__main__":
    sys.exit(main())
