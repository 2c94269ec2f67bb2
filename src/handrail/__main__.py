"""`python -m handrail` is `handrail`."""

from .cli import main

if __name__ == "__main__":
    main()
