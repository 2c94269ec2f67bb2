-- step
CREATE TABLE tasks (
  id TEXT PRIMARY KEY, number INTEGER NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL, attempt INTEGER NOT NULL,
  failures INTEGER NOT NULL, worker TEXT NOT NULL, result TEXT NOT NULL,
  reward DOUBLE PRECISION, cost DOUBLE PRECISION, tokens BIGINT
);
CREATE INDEX tasks_by_state ON tasks (state, number);
CREATE TABLE journal (
  task TEXT NOT NULL, call TEXT NOT NULL, attempt INTEGER NOT NULL, tool TEXT NOT NULL, state TEXT NOT NULL,
  asked INTEGER NOT NULL, result TEXT NOT NULL, PRIMARY KEY (task, call)
);
CREATE TABLE replies (task TEXT NOT NULL, request TEXT NOT NULL, reply TEXT NOT NULL, PRIMARY KEY (task, request));
CREATE TABLE questions (request TEXT PRIMARY KEY, task TEXT NOT NULL, attempt INTEGER NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
