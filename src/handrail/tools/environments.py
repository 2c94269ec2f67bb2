"""The original's place for environments. Here it is `handrail.environments`."""

from ..base.lazy_module import lazy_module

_HOMES = {"TaskEnvironments": "handrail.environments.tasks", "backends": "handrail.environments.backend_table"}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_module(__name__, _HOMES)
