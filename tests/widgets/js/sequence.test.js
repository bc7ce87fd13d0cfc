// The layout of a sequence diagram: where things stand, which lines fold, what is left out.

import { expect, test } from "vitest";
import { file, groupOf } from "../../../widgets/postroom_widgets/static/filing.js";
import { escaped, colour, toMermaid } from "../../../widgets/postroom_widgets/static/keeping.js";
import { between, layOut, rowAt } from "../../../widgets/postroom_widgets/static/sequence.js";
import { bar, line, mark, run, society } from "./board_fakes.js";

const wide = { width: 900 };
const rowOf = (layout, key) => layout.rows.find((row) => row.mark.key === key);

test("you stand first, then the sessions as a tree, whenever they were made", () => {
  const log = file([line("a", 0), line("b", 1), line("c", 2, { parent: "a" }), mark(1, "", "a"), mark(2, "a", "c"), mark(3, "c", "b")]);
  const { columns } = layOut(log, wide);

  expect(columns.map((column) => column.id)).toEqual(["", "a", "c", "b"]);
  expect(columns.map((column) => column.x)).toEqual(columns.map((c) => c.x).sort((p, q) => p - q));
});

test("there is a row for each mark, in the order of the journal, one below the other", () => {
  const log = file([line("a"), mark(5, "", "a"), mark(2, "", "a"), mark(9, "a", "")]);
  const { rows, height } = layOut(log, { ...wide, row: 24 });

  expect(rows.map(({ mark }) => mark.n)).toEqual([2, 5, 9]);
  expect(rows.map(({ y }) => y)).toEqual([24, 48, 72]);
  expect(height).toBeGreaterThan(72);
});

test("the first letter that follows a spawn at once draws the birth", () => {
  const log = file([
    line("a"),
    mark(1, "", "a", { what: "spawn" }),
    mark(2, "", "a"),
    line("b", 1),
    mark(3, "", "b", { what: "spawn" }),
    mark(4, "", "a"),
  ]);
  const { rows, at } = layOut(log, wide);

  expect(rows.map(({ mark, birth }) => [mark.n, birth])).toEqual([[2, true], [3, true], [4, false]]);
  expect(at.get("a").top).toBe(rows[0].y);
  expect(at.get("b").top).toBe(rows[1].y);
});

test("a lifeline that nothing touches folds, and neighbours fold together", () => {
  const log = file([..."abcd"].map((id, i) => line(id, i)).concat(mark(1, "", "a"), mark(2, "", "d")));
  const { columns } = layOut(log, wide);

  expect(columns.map(({ stub, members }) => (stub ? members : members[0]))).toEqual(["", "a", ["b", "c"], "d"]);
  const open = layOut(log, { ...wide, unfolded: new Set(["b", "c"]) });
  expect(open.columns).toHaveLength(5);
});

test("few lines stand wide apart with labels on their arrows, many close with labels at the side", () => {
  const log = society(30, 200);
  const few = layOut(society(4, 40), wide);
  const many = layOut(log, { width: 800 });
  const narrow = layOut(society(6, 40), { width: 440, gutter: 52 });

  expect(few.margin).toBe(false);
  for (const layout of [many, narrow]) {
    expect(layout.margin).toBe(true);
    expect(layout.right).toBeLessThan(layout.width - 100);
    for (const { lx, room } of layout.rows) expect(lx + room).toBeLessThanOrEqual(layout.width);
  }
  expect(many.columns.some((column) => column.stub)).toBe(true);
  expect(many.columns.filter(({ stub }) => !stub).length).toBeGreaterThan(8);
});

test("the session that is looked at never folds", () => {
  const log = society(40, 400);
  const quiet = log.lines.at(-1).id;
  const { columns } = layOut(log, { width: 500, focus: quiet });

  expect(columns.some(({ id }) => id === quiet)).toBe(true);
});

test("only one session's mail is shown, and only the kinds that are chosen", () => {
  const log = file([line("a"), line("b", 1), mark(1, "", "a"), mark(2, "a", "b", { tone: "agent" }), mark(3, "", "b"), mark(4, "b", "b", { what: "call", tone: "tool", id: "call_1" }), bar("call_1", "b", 4)]);

  expect(layOut(log, { ...wide, focus: "a" }).rows.map(({ mark }) => mark.n)).toEqual([1, 2]);
  const calm = layOut(log, { ...wide, hidden: new Set(["calls", "agents"]) });
  expect(calm.rows.map(({ mark }) => mark.n)).toEqual([1, 3]);
  expect(calm.bars).toEqual([]);
});

test("calls of one session that overlap lie beside each other, and a lane is used again", () => {
  const calls = [[1, 4], [2, 3], [5, 6]].flatMap(([begun, ended], i) => [
    mark(begun, "a", "a", { what: "call", id: `call_${i}`, tone: "tool" }),
    bar(`call_${i}`, "a", begun, { ended }),
  ]);
  const { bars } = layOut(file([line("a"), ...calls]), wide);

  expect(bars.map(({ lane }) => lane)).toEqual([0, 1, 0]);
  for (const { y1, y2 } of bars) expect(y2).toBeGreaterThan(y1);
});

test("a call that is not over reaches to the end, and shows where it was detached", () => {
  const rows = [line("a"), mark(1, "a", "a", { what: "call", id: "call_0" }), bar("call_0", "a", 1, { detached: 3, state: "running" }), mark(4, "", "a")];
  const [drawn] = layOut(file(rows), wide).bars;

  expect(drawn.open).toBe(true);
  expect(drawn.turned).toBeGreaterThan(drawn.y1);
  expect(drawn.turned).toBeLessThan(drawn.y2);
});

test("a call that began above the first row reaches in from the top", () => {
  const log = file([line("a"), mark(50, "", "a"), bar("call_0", "a", 3), bar("call_1", "a", 4, { ended: 9 })]);

  expect(layOut(log, wide).bars.map(({ bar, y1 }) => [bar.call, y1])).toEqual([["call_0", 0]]);
});

test("silence is one line with its length, however long it was", () => {
  const log = file([line("a"), mark(1, "", "a", { at: "2026-03-02T10:00:00Z" }), mark(2, "", "a", { at: "2026-03-02T10:05:00Z" }), mark(3, "", "a", { at: "2026-03-02T10:05:19Z" })]);
  const { rows, silences } = layOut(log, wide);

  expect(silences.map(({ seconds }) => seconds)).toEqual([300]);
  expect(rows[1].y - rows[0].y).toBe(44);
  expect(rows[2].y - rows[1].y).toBe(24);
});

test("runs, pauses and failures lie on their lifeline until the next run", () => {
  const log = file([
    line("a"),
    mark(1, "", "a"),
    run(0, "a", 2, 3),
    mark(4, "a", "a", { what: "failed", tone: "bad" }),
    mark(5, "", "a"),
    run(1, "a", 6, 7),
    mark(8, "", "a", { what: "control", label: "pause", tone: "sys" }),
    mark(9, "", "a"),
  ]);
  const { marred, rows, runs, height } = layOut(log, wide);

  expect(runs).toHaveLength(2);
  expect(marred.map(({ kind }) => kind)).toEqual(["bad", "now"]);
  expect(marred[0].y2).toBeLessThan(rows[3].y);
  expect(marred[1].y2).toBe(height);
});

test("rows are found by their height and by their number in the journal", () => {
  const layout = layOut(society(4, 100), wide);
  const [from, to] = between(layout, 480, 960);

  expect(layout.rows.slice(from, to).every(({ y }) => y >= 480 && y < 960)).toBe(true);
  expect(to - from).toBeGreaterThan(10);
  expect(rowAt(layout, layout.rows[7].mark.n)).toBe(7);
  expect(rowAt(layout, 0)).toBe(-1);
  expect(rowAt(layout, 1e9)).toBe(99);
});

test("ten thousand entries are laid out, and each has its place", () => {
  const layout = layOut(society(24, 10_000), { width: 1000 });

  expect(layout.rows).toHaveLength(10_000);
  expect(new Set(layout.rows.map(({ y }) => y)).size).toBe(10_000);
});

test("every kind of mark belongs to a group of the filters", () => {
  const kinds = ["mail", "reply", "interrupt", "answer", "control", "spawn", "close", "call", "result", "refused", "approval", "watched", "timer", "system", "failed"];

  expect(kinds.map((what) => groupOf({ what, tone: "agent" }))).not.toContain(undefined);
  expect(groupOf({ what: "mail", tone: "user" })).toBe("you");
  expect(groupOf({ what: "interrupt", tone: "now" })).toBe("interrupt");
});

test("a lifeline arrow ends where the session stands", () => {
  const log = file([line("a"), line("b", 1), mark(1, "a", "b", { tone: "agent" }), mark(2, "b", "a", { tone: "agent" })]);
  const layout = layOut(log, wide);

  const [there, back] = layout.rows;
  expect([there.x1, there.x2]).toEqual([layout.at.get("a").x, layout.at.get("b").x]);
  expect([there.dir, back.dir]).toEqual([1, -1]);
  expect(rowOf(layout, "e:2").anchor).toBe("end");
});

test("nothing in a text means anything to Mermaid", () => {
  expect(escaped("a; b # c: <d>\n\"e\" %% f")).toBe("a#59; b #35; c#58; #60;d#62; #34;e#34; #37;#37; f");
  expect(escaped("End")).toBe("#69;nd");
  expect(escaped("naïve 你好 ok?")).toBe("naïve 你好 ok?");
});

test("what is not read yet, and what was refused, is told apart in Mermaid", () => {
  const log = file([line("a"), mark(1, "", "a", { unread: true, label: "hi" }), mark(2, "a", "", { what: "refused", label: "no" })]);

  expect(toMermaid(log, { marks: log.marks, bars: [] }).split("\n")).toEqual([
    "sequenceDiagram",
    "  actor p0 as you",
    "  participant p1 as a",
    "  p0-)p1: hi",
    "  p1-xp0: no",
  ]);
});

test("a mixed colour is written so that every program reads it", () => {
  expect(colour("color(srgb 0.5 0 1)")).toBe("rgb(128, 0, 255)");
  expect(colour("color(srgb 0 0 0 / 0.5)")).toBe("rgba(0, 0, 0, 0.5)");
  expect(colour("rgb(1, 2, 3)")).toBe("rgb(1, 2, 3)");
});
