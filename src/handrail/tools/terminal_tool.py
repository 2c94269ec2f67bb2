"""The original's place for the terminal tool and for where a task's commands run."""

from ..base.lazy_module import lazy_module

_NAMES = ("register_task_env_overrides", "clear_task_env_overrides")
_HOMES = dict.fromkeys(_NAMES, "handrail.model_tools")
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_module(__name__, _HOMES)
