// Rows of a switchboard, as the kernel sends them.

import { file } from "../../../widgets/postroom_widgets/static/filing.js";

const LINES = 2 ** 50;

export const line = (id, at = 0, more = {}) => ({
  key: `l:${id}`,
  v: 1,
  o: [LINES, at],
  kind: "line",
  id,
  name: id,
  agent: id,
  status: "idle",
  ...more,
});

export const mark = (n, from, to, more = {}) => ({
  key: `e:${n}`,
  v: n,
  o: [n, n],
  kind: "mark",
  n,
  at: "2026-03-02T10:02:14Z",
  what: "mail",
  tone: from === "" ? "user" : "agent",
  label: `letter ${n}`,
  id: `m-${String(n).padStart(4, "0")}`,
  ...(from && { from }),
  ...(to && { to }),
  ...more,
});

export const bar = (call, session, begun, more = {}) => ({
  key: `b:${call}`,
  v: begun,
  o: [begun, 2 ** 40],
  kind: "bar",
  call,
  session,
  tool: "run_tests",
  begun,
  state: more.ended ? "completed" : "running",
  ...more,
});

export const run = (at, session, begun, ended) => ({
  key: `r:${at}`,
  v: begun,
  o: [begun, 2 ** 41 + at],
  kind: "run",
  session,
  begun,
  ended,
});

/** The rows of `people` sessions that write to each other `count` times, always the same. */
export function societyRows(people, count) {
  const ids = Array.from({ length: people }, (_, i) => `s${i}`);
  const rows = ids.map((id, i) => line(id, i, { parent: i ? ids[(i - 1) >> 2] : undefined }));
  let seed = 7;
  const random = (n) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * n);
  };
  for (let n = 1; n <= count; n++) {
    const from = ids[random(people)];
    const at = new Date(Date.UTC(2026, 2, 2, 10) + n * 700).toISOString();
    if (n % 5 === 0) {
      const id = `call_${n}`;
      rows.push(mark(n, from, from, { what: "call", tone: "tool", id, at, label: "fetch_page" }));
      rows.push(bar(id, from, n, { ended: n + 1 + random(30) }));
    } else rows.push(mark(n, from, ids[random(people)], { at }));
  }
  return rows;
}

export const society = (people, count) => file(societyRows(people, count));
