-- step
CREATE TABLE runs (
  id TEXT PRIMARY KEY, plan TEXT NOT NULL, state TEXT NOT NULL, created REAL NOT NULL, started REAL, ended REAL,
  error TEXT NOT NULL, stop INTEGER NOT NULL, owner TEXT NOT NULL
);
CREATE TABLE rollouts (
  run TEXT NOT NULL, number INTEGER NOT NULL, task TEXT NOT NULL, state TEXT NOT NULL, reward REAL, session TEXT NOT NULL,
  ended_by TEXT NOT NULL, error TEXT NOT NULL, seconds REAL, model_calls INTEGER NOT NULL, tokens INTEGER NOT NULL,
  folder TEXT NOT NULL, PRIMARY KEY (run, number)
);
