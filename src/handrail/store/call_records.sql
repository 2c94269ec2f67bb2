-- step
CREATE TABLE calls (
  number INTEGER PRIMARY KEY, session TEXT, task TEXT, tool TEXT NOT NULL, head TEXT NOT NULL, folder TEXT NOT NULL,
  environment TEXT NOT NULL, settings TEXT NOT NULL, begun REAL NOT NULL, ended REAL, coverage TEXT NOT NULL, reason TEXT NOT NULL,
  counts TEXT NOT NULL, hosts INTEGER NOT NULL, digest TEXT NOT NULL, approval TEXT NOT NULL, undoes INTEGER NOT NULL,
  undone_by INTEGER NOT NULL, outcome TEXT NOT NULL, is_told INTEGER NOT NULL
);
CREATE INDEX calls_by_session ON calls (session, number);
CREATE TABLE receipts (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE TABLE seals (
  id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, signature TEXT NOT NULL
);
-- step
ALTER TABLE calls ADD COLUMN left_running TEXT NOT NULL DEFAULT '[]';
