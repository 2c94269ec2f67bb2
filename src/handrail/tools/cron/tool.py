"""The tool `cronjob`: schedule jobs. It only stores them; `handrail cron run` runs them."""

from __future__ import annotations

from ...core.builtin import registry
from ...types import Resources

registry.register(
    name="cronjob",
    toolset="cronjob",
    schema={
        "description": (
            "Have something done at set times: a prompt for an agent, or one call of a tool. Schedules: cron "
            "('0 9 * * MON-FRI'), an interval ('30m', 'every 2h'), once ('in 2h', '2026-12-24T18:00'). Nobody is there when a "
            "job runs: put all that it needs into its prompt; what needs approval is denied. The user is asked before a job "
            "is made or changed."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["create", "list", "update", "pause", "resume", "remove", "run"],
                    "description": "list with job_id shows its last runs; run has it run once, now.",
                },
                "job_id": {"type": "string", "description": "A job's id or name; for all but create."},
                "schedule": {"type": "string", "maxLength": 200, "description": "When."},
                "timezone": {"type": "string", "description": "Such as Europe/Berlin. Default: the machine's."},
                "prompt": {"type": "string", "description": "What an agent is to do, complete in itself."},
                "tool": {"type": "string", "description": "Instead of prompt: a tool to call."},
                "arguments": {"type": "object", "description": "For tool."},
                "name": {"type": "string", "description": "For the user."},
                "toolsets": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": 'What the run may use, such as ["web"]. Default handrail-cron.',
                },
                "deliver": {"type": "string", "description": "Where to send what it gives: a target for messages."},
                "missed": {
                    "type": "string",
                    "enum": ["once", "skip"],
                    "description": "Runs that were missed are made up once, or skipped. Default once.",
                },
                "repeat": {"type": "integer", "minimum": 1, "description": "How often in all. Default without end."},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": 86400,
                    "description": "Seconds that a run may take.",
                },
                "model": {"type": "string", "description": "For prompt: another model than usual."},
            },
            "required": ["action"],
        },
    },
    handler="handrail.tools.cron.calls:cronjob",
    emoji="⏰",
    resources=lambda args: (
        Resources(reads=("cron/jobs",)) if args.get("action") == "list" else Resources(writes=("cron/jobs",))
    ),
    actions="handrail.tools.cron.calls:actions",
    toolset_description="schedule jobs",
    example=[
        {
            "action": "create",
            "schedule": "0 9 * * MON-FRI",
            "timezone": "Europe/Berlin",
            "name": "issues",
            "prompt": "Summarise the issues that are new since yesterday.",
        },
        {
            "action": "create",
            "schedule": "every 30m",
            "name": "disk",
            "tool": "terminal",
            "arguments": {"command": "df -h /"},
        },
        {"action": "pause", "job_id": "disk"},
        {"action": "list"},
    ],
)
