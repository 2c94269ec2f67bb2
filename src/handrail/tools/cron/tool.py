"""The tool `cronjob`: schedule jobs. It only stores them; `handrail cron run` runs them."""

from ...core.builtin import family, integer, number, registry, text, texts
from ...types import Resources

registry.register(
    **family("cronjob", "handrail.tools.cron.job_requests")(
        "cronjob",
        "Have something done at set times: a prompt for an agent, or one call of a tool. Schedules: cron "
        "('0 9 * * MON-FRI'), an interval ('30m', 'every 2h'), once ('in 2h', '2026-12-24T18:00'). Nobody is there when a "
        "job runs: put all that it needs into its prompt; what needs approval is denied. The user is asked before a job "
        "is made or changed.",
        ("action",),
        action=text(
            "list with job_id shows its last runs; run has it run once, now.",
            enum=["create", "list", "update", "pause", "resume", "remove", "run"],
        ),
        job_id=text("A job's id or name; for all but create."),
        schedule=text("When.", maxLength=200),
        timezone=text("Such as Europe/Berlin. Default: the machine's."),
        prompt=text("What an agent is to do, complete in itself."),
        tool=text("Instead of prompt: a tool to call."),
        arguments={"type": "object", "description": "For tool."},
        name=text("For the user."),
        toolsets=texts('What the run may use, such as ["web"]. Default handrail-cron.'),
        deliver=text("Where to send what it gives: a target for messages."),
        missed=text("Runs that were missed are made up once, or skipped. Default once.", enum=["once", "skip"]),
        repeat=integer("How often in all. Default without end.", minimum=1),
        timeout=number("Seconds that a run may take.", exclusiveMinimum=0, maximum=86400),
        model=text("For prompt: another model than usual."),
    ),
    emoji="⏰",
    resources=lambda args: (
        Resources(reads=("cron/jobs",)) if args.get("action") == "list" else Resources(writes=("cron/jobs",))
    ),
    actions="handrail.tools.cron.job_requests:actions",
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
