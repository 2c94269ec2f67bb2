-- step
CREATE TABLE people (adapter TEXT, person TEXT, paired REAL NOT NULL, PRIMARY KEY (adapter, person));
CREATE TABLE codes (digest TEXT PRIMARY KEY, expires REAL NOT NULL);
CREATE TABLE chats (adapter TEXT, chat TEXT, session TEXT, unfinished TEXT NOT NULL, PRIMARY KEY (adapter, chat));
CREATE INDEX chats_by_session ON chats (session);
CREATE TABLE posts (
  request TEXT, adapter TEXT, chat TEXT, message TEXT NOT NULL, is_over INTEGER NOT NULL,
  PRIMARY KEY (request, adapter, chat)
);
CREATE TABLE places (adapter TEXT PRIMARY KEY, place TEXT NOT NULL);
-- step
ALTER TABLE posts ADD COLUMN posted REAL NOT NULL DEFAULT 0;
ALTER TABLE posts ADD COLUMN ended REAL NOT NULL DEFAULT 0;
