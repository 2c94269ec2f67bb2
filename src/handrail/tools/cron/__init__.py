"""The tool `cronjob`, and what the scheduler and the CLI share with it: `schedule` reads times and allows one
scheduler, `job_requests` makes jobs."""
