"""The SQL views of a room: one line per thing, plain columns, all times in UTC.

- ``mail(session, session_name, seq, id, sender_kind, sender, priority, hops, kind, text,
  in_reply_to, expects_reply, body, accepted_at, consumed_in_turn)``. ``sender`` is what a person
  would say: of a session its name (``sessions`` has the id), of the owner ``user`` or their name, of
  a tool the id of the call, of the system which part of it. ``body`` is JSON, without the sender.
  ``consumed_in_turn`` is the ``index`` of the first user turn whose stored cursor reaches the mail;
  NULL while it is unread.
- ``sessions(id, name, agent, parent, status, cursor, unread, created_at)``, owner inboxes left out.
  ``status`` is the stored one: what is live and not yet stored, only the room knows.
- ``turns(session, session_name, index, role, text, calls, results, input_tokens, output_tokens,
  end_reason, at, cost)``. ``calls`` and ``results`` are JSON lists, empty where there are none;
  ``cost`` is in US dollars, NULL where it is not known.
- ``calls(id, session, session_name, tool, arguments, state, result, started_at, ended_at)``: each
  call as it stands now. ``arguments`` and ``result`` are JSON.
- ``events(seq, session, session_name, kind, data, at)``: what was stored of the feed.
- ``approvals(id, token, session, agent, tool, arguments, reason, state, asked_at)``: each in its
  latest state, open or answered.
- ``inbox(agent, seq, id, type, content, metadata, at)``: the entries of the owner inboxes.
- ``usage(session, session_name, agent, requests, input_tokens, output_tokens, cost)``; ``cost`` counts
  the turns whose price is known.

``at`` is a word of DuckDB's SQL: write it as ``"at"``. Below all lies the table ``journal``.
"""

_EMPTY = "'{}'"

_LATEST = """(
    SELECT session, id AS name, seq AS version, "cursor", payload FROM journal
    WHERE n IN (SELECT max(n) FROM journal WHERE kind = 'session' GROUP BY session)
)"""


def _text(path: str, of: str = "j") -> str:
    return f"json_extract_string({of}.payload, '$.{path}')"


def _number(path: str, of: str = "j") -> str:
    return f"coalesce(CAST({_text(path, of)} AS BIGINT), 0)"


def _cost(path: str, of: str = "j") -> str:
    return f"CAST({_text(path, of)} AS DOUBLE)"


def _json(path: str, default: str = "NULL", of: str = "j") -> str:
    return f"coalesce(json_extract({of}.payload, '$.{path}'), CAST({default} AS JSON))"


def _moment(path: str, of: str = "j") -> str:
    return f"CAST({_text(path, of)} AS TIMESTAMP)"


_NAME = "coalesce(s.name, j.session) AS session_name"
_NAMED = f"LEFT JOIN {_LATEST} s ON s.session = j.session"

VIEWS = f"""
CREATE OR REPLACE VIEW mail AS
SELECT
    j.session, {_NAME}, j.seq, j.id,
    {_text("sender.kind")} AS sender_kind,
    CASE {_text("sender.kind")}
        WHEN 'session' THEN coalesce(f.name, {_text("sender.session")})
        WHEN 'user' THEN coalesce({_text("sender.owner")}, 'user')
        WHEN 'tool' THEN {_text("sender.call")}
        WHEN 'system' THEN {_text("sender.name")}
    END AS sender,
    {_text("priority")} AS priority,
    {_number("hops")} AS hops,
    {_text("body.kind")} AS kind,
    coalesce(
        {_text("body.text")},
        {_text("body.content")},
        CASE WHEN json_type(j.payload, '$.body.response') = 'VARCHAR' THEN {_text("body.response")} END,
        ''
    ) AS text,
    {_text("body.in_reply_to")} AS in_reply_to,
    coalesce(CAST({_text("body.expects_reply")} AS BOOLEAN), false) AS expects_reply,
    {_json("body")} AS body,
    j."at" AS accepted_at,
    t.turn AS consumed_in_turn
FROM (SELECT * FROM journal WHERE kind = 'mail') j
{_NAMED}
LEFT JOIN {_LATEST} f ON f.session = {_text("sender.session")}
ASOF LEFT JOIN (
    SELECT session, "cursor", min(seq) AS turn FROM journal
    WHERE kind = 'turn' AND id = 'user' GROUP BY ALL
) t ON t.session = j.session AND j.seq <= t."cursor";

CREATE OR REPLACE VIEW sessions AS
SELECT
    j.session AS id, j.name, {_text("agent")} AS agent, {_text("parent")} AS parent,
    coalesce({_text("status")}, 'ready') AS status,
    j."cursor", coalesce(m.head, 0) - j."cursor" AS unread,
    {_moment("created_at")} AS created_at
FROM {_LATEST} j
LEFT JOIN (SELECT session, max(seq) AS head FROM journal WHERE kind = 'mail' GROUP BY session) m
    ON m.session = j.session
WHERE NOT starts_with(j.session, 'inbox@');

CREATE OR REPLACE VIEW turns AS
SELECT
    j.session, {_NAME}, j.seq AS "index", j.id AS role, {_text("text")} AS text,
    {_json("calls", "'[]'")} AS calls, {_json("results", "'[]'")} AS results,
    {_number("usage.input_tokens")} AS input_tokens,
    {_number("usage.output_tokens")} AS output_tokens,
    {_text("end_reason")} AS end_reason, j."at", {_cost("usage.cost")} AS cost
FROM (SELECT * FROM journal WHERE kind = 'turn') j
{_NAMED};

CREATE OR REPLACE VIEW calls AS
SELECT
    j.id, j.session, {_NAME}, {_text("tool")} AS tool, {_json("arguments", _EMPTY)} AS arguments,
    {_text("state")} AS state, {_json("result")} AS result,
    {_moment("started_at")} AS started_at, {_moment("ended_at")} AS ended_at
FROM (
    SELECT * FROM journal
    WHERE n IN (SELECT max(n) FROM journal WHERE kind = 'call' GROUP BY session, id)
) j
{_NAMED};

CREATE OR REPLACE VIEW events AS
SELECT
    j.n AS seq, j.session, {_NAME}, j.id AS kind, {_json("data", _EMPTY)} AS data,
    {_moment("at")} AS "at"
FROM (SELECT * FROM journal WHERE kind = 'event') j
{_NAMED};

CREATE OR REPLACE VIEW approvals AS
SELECT
    j.id, {_text("token")} AS token, j.session, {_text("agent")} AS agent,
    {_text("tool")} AS tool, {_json("arguments", _EMPTY)} AS arguments,
    coalesce({_text("reason")}, '') AS reason, coalesce({_text("state")}, 'pending') AS state,
    CAST({_text("asked_at")} AS TIMESTAMP) AS asked_at
FROM journal j
WHERE j.n IN (SELECT max(n) FROM journal WHERE kind = 'approval' GROUP BY id);

CREATE OR REPLACE VIEW inbox AS
SELECT
    substr(j.session, length('inbox@') + 1) AS agent, j.seq, j.id,
    coalesce({_text("body.type")}, 'notification') AS type,
    coalesce({_text("body.content")}, '') AS content,
    {_json("body.metadata", _EMPTY)} AS metadata, j."at"
FROM journal j WHERE j.kind = 'entry';

CREATE OR REPLACE VIEW usage AS
SELECT
    j.session, j.name AS session_name, {_text("agent")} AS agent,
    {_number("usage.requests")} AS requests,
    {_number("usage.input_tokens")} AS input_tokens,
    {_number("usage.output_tokens")} AS output_tokens,
    {_cost("usage.cost")} AS cost
FROM {_LATEST} j WHERE NOT starts_with(j.session, 'inbox@');
"""
"""The statements that make the views over the table ``journal``; they may run again at any time."""
