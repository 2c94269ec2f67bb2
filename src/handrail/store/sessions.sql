-- step
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, created REAL NOT NULL, updated REAL NOT NULL, title TEXT NOT NULL, platform TEXT NOT NULL,
  model TEXT NOT NULL, cwd TEXT NOT NULL, parent TEXT, branched_at INTEGER, kind TEXT NOT NULL,
  input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL
);
CREATE INDEX sessions_by_time ON sessions (kind, updated);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY, session TEXT NOT NULL, at REAL NOT NULL, role TEXT NOT NULL, body TEXT NOT NULL,
  hidden INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX messages_by_session ON messages (session, id);
CREATE TABLE calls (
  id INTEGER PRIMARY KEY, session TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL,
  at REAL NOT NULL, seconds REAL NOT NULL, error_type TEXT NOT NULL
);
CREATE INDEX calls_by_session ON calls (session, id);
CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61');
CREATE VIRTUAL TABLE pieces USING fts5(text, content='', tokenize='trigram');

-- step: A copy repeats a stored message: it belongs to the conversation, and is not searched a second time.
ALTER TABLE messages ADD COLUMN copy INTEGER NOT NULL DEFAULT 0;
CREATE TABLE model_calls (
  id INTEGER PRIMARY KEY, session TEXT NOT NULL, at REAL NOT NULL, seconds REAL NOT NULL, model TEXT NOT NULL,
  input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, cost REAL,
  error TEXT NOT NULL
);
CREATE INDEX model_calls_by_session ON model_calls (session, id);

-- step: The last message that the search index covers.
CREATE TABLE indexed (last INTEGER NOT NULL);
INSERT INTO indexed SELECT coalesce(max(id), 0) FROM messages;

-- step: Words of scripts without spaces are split, so everything is indexed again.
DROP TABLE words;
DROP TABLE pieces;
CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61');
CREATE VIRTUAL TABLE pieces USING fts5(text, content='', tokenize='trigram');
UPDATE indexed SET last = 0;

-- step: How long a call waited for an answer.
ALTER TABLE calls ADD COLUMN waited REAL NOT NULL DEFAULT 0;
