"""``python -m nestbo.experiment``."""

from nestbo.experiment.command import main

if __name__ == "__main__":
    main()
