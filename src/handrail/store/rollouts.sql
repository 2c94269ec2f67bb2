-- step
CREATE TABLE runs (
  id TEXT PRIMARY KEY, plan TEXT NOT NULL, state TEXT NOT NULL, created REAL NOT NULL, started REAL, ended REAL,
  error TEXT NOT NULL, stop INTEGER NOT NULL, owner TEXT NOT NULL
);
