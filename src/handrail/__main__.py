"""`python -m handrail` is `handrail`, without what `-m` would import from the current folder."""

from .base.own_process import forget_start_folder

if __name__ == "__main__":
    forget_start_folder()
    from .cli import main  # looks up other modules, which must not be the current folder's

    main()
