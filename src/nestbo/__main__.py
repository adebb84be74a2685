"""``python -m nestbo`` is the command ``nestbo``."""

from nestbo.cli import main

if __name__ == "__main__":
    main()
