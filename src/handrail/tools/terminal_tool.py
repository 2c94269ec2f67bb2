"""The original's place for the terminal tool and for where a task's commands run."""

from ..base.lazy_module import lazy_module

__getattr__, __dir__, __all__ = lazy_module(
    __name__, {"handrail.model_tools": "register_task_env_overrides clear_task_env_overrides"}
)
