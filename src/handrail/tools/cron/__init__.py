"""Jobs that run at set times: what a schedule means, and what a call of `cronjob` asks for."""
