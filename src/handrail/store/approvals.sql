-- step
CREATE TABLE requests (
  id TEXT PRIMARY KEY, created REAL NOT NULL, expires REAL NOT NULL, fingerprint TEXT NOT NULL, owner TEXT NOT NULL,
  state TEXT NOT NULL, decision TEXT, by TEXT, why TEXT, seconds REAL, uses INTEGER, answered REAL, question TEXT NOT NULL
);
CREATE INDEX requests_by_state ON requests (state, expires);
CREATE INDEX requests_by_fingerprint ON requests (fingerprint, state);
CREATE TABLE grants (
  id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, key TEXT NOT NULL, by TEXT NOT NULL, created REAL NOT NULL,
  expires REAL, uses_left INTEGER, owner TEXT NOT NULL
);
CREATE INDEX grants_by_scope ON grants (scope);
CREATE TABLE decisions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, request TEXT, tool TEXT NOT NULL, kind TEXT NOT NULL,
  text TEXT NOT NULL, cwd TEXT NOT NULL, environment TEXT NOT NULL, session TEXT, task TEXT, keys TEXT NOT NULL,
  decision TEXT NOT NULL, by TEXT NOT NULL, why TEXT NOT NULL, seconds REAL NOT NULL
);
-- step
ALTER TABLE requests ADD COLUMN edited TEXT NOT NULL DEFAULT '';
