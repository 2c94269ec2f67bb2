"""The original's place for environments. Here it is `handrail.environments`."""

from ..base.lazy_module import lazy_module

__getattr__, __dir__, __all__ = lazy_module(
    __name__, {"handrail.environments.tasks": "TaskEnvironments", "handrail.environments.backend_table": "backends"}
)
