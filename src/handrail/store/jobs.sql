-- step
CREATE TABLE jobs (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, schedule TEXT NOT NULL, timezone TEXT NOT NULL, work TEXT NOT NULL,
  state TEXT NOT NULL, next_run REAL, requested REAL, runs_left INTEGER, created REAL NOT NULL
);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, due REAL NOT NULL, started REAL NOT NULL, ended REAL,
  state TEXT NOT NULL, output TEXT NOT NULL, error TEXT NOT NULL, delivered TEXT NOT NULL, owner TEXT NOT NULL
);
CREATE INDEX runs_by_job ON runs (job, id);
CREATE INDEX runs_by_state ON runs (state);
