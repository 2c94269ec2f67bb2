-- step
CREATE TABLE tokens (
  digest TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, role INTEGER NOT NULL, created REAL NOT NULL, used REAL
);
CREATE TABLE logins (digest TEXT PRIMARY KEY, name TEXT NOT NULL, role INTEGER NOT NULL, expires REAL NOT NULL);
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, who TEXT NOT NULL, role INTEGER NOT NULL, address TEXT NOT NULL,
  action TEXT NOT NULL, detail TEXT NOT NULL, status INTEGER NOT NULL
);
-- step
-- Logins without a page key hold no longer. The salt makes the digest of a token that somebody chose costly to guess.
DROP TABLE logins;
CREATE TABLE logins (
  id TEXT PRIMARY KEY, cookie TEXT NOT NULL UNIQUE, page_key TEXT NOT NULL, credential TEXT NOT NULL, name TEXT NOT NULL,
  role INTEGER NOT NULL, created REAL NOT NULL, used REAL NOT NULL, expires REAL NOT NULL, address TEXT NOT NULL,
  agent TEXT NOT NULL
);
CREATE TABLE salt (value BLOB NOT NULL);
INSERT INTO salt VALUES (randomblob(16));
