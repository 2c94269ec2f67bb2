"""The tool `cronjob`, and what the scheduler and the CLI share with it: `schedule` reads times, `job_requests` makes jobs, `lock`
allows one scheduler."""
