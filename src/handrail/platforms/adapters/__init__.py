"""The platforms, one a file: `Settings`, a frozen dataclass, and `Adapter(settings)`, which fills the role in `base`."""
