// Where everything of a sequence diagram stands, in pixels. Pure: a log in, geometry out; it measures
// no text and knows no page.

import { groupOf, LETTERS, source, target } from "./filing.js";

const WIDE = 104; // columns from here up carry labels on their arrows
const WIDEST = 256;
const CLOSE = 26; // and closer than this, lifelines fold
const CLOSEST = 20;
const FARTHEST = 64; // apart, with the labels at the side
const STUB = 36;
const SILENCE = 20; // seconds without a mark that are worth a line
const GAP = 20;
const LANE = 7;
const NONE = new Set();
const ASIDE = { result: 26, refused: 26, call: 6, failed: 12, close: 12 };

/**
 * Lay out a log.
 *
 * `hidden` are groups of kinds left out, `focus` is the one session shown (null: all), `unfolded`
 * are sessions whose lifeline is kept whatever happens.
 */
export function layOut(log, options = {}) {
  const { width = 800, row = 24, gutter = 64, hidden = NONE, focus = null } = options;
  const shown = choose(log, hidden, focus);
  const grid = columnsOf(log, shown, { width, gutter, focus, unfolded: options.unfolded ?? NONE });
  const layout = { ...grid, rows: [], bars: [], runs: [], silences: [], gutter, row, width };
  const pen = new Pen(layout, log, { hidden, focus, row });
  pen.early(shown[0]?.mark.n ?? 0);
  for (const each of shown) pen.mark(each);
  pen.finish();
  return layout;
}

/** The marks to show. A session's first letter that follows at once draws its birth too. */
function choose({ marks }, hidden, focus) {
  const kept = marks.filter(
    (mark) =>
      !hidden.has(groupOf(mark)) &&
      (focus === null || source(mark) === focus || target(mark) === focus),
  );
  const shown = [];
  let born = null;
  for (let i = 0; i < kept.length; i++) {
    const mark = kept[i];
    const next = kept[i + 1];
    const same = next && source(next) === source(mark) && target(next) === target(mark);
    if (mark.what === "spawn" && same && LETTERS.has(next.what)) born = mark;
    else {
      shown.push({ mark, birth: mark.what === "spawn" || born !== null });
      born = null;
    }
  }
  return shown;
}

function columnsOf(log, shown, { width, gutter, focus, unfolded }) {
  const touched = new Map();
  const touch = (id) => touched.set(id, (touched.get(id) ?? 0) + 1);
  for (const { mark } of shown) {
    touch(source(mark));
    touch(target(mark));
  }
  const order = ["", ...log.tree.map(({ line }) => line.id)];
  let keep = new Set(order.filter((id) => touched.has(id) || unfolded.has(id)));
  const room = width - gutter;
  let columns = grouped(order, keep);
  let stubs = columns.filter((column) => column.stub).length;
  const margin = keep.size > 0 && (room - stubs * STUB) / keep.size < WIDE;
  const graph = margin ? Math.min(room * 0.56, Math.max(room - 230, room * 0.42)) : room;
  const most = Math.floor(graph / CLOSE);
  if (margin && keep.size > most) {
    const weight = (id) =>
      (unfolded.has(id) ? 1e9 : 0) + (id === focus || id === "" ? 1e8 : 0) + (touched.get(id) ?? 0);
    const opened = [...keep].filter((id) => unfolded.has(id)).length;
    keep = new Set([...keep].sort((a, b) => weight(b) - weight(a)).slice(0, Math.max(2, most - 2) + opened));
    columns = grouped(order, keep);
    stubs = columns.filter((column) => column.stub).length;
  }
  const stubWide = margin ? CLOSEST : STUB;
  const wide = (graph - stubs * stubWide) / Math.max(1, keep.size);
  const step = Math.max(margin ? CLOSEST : WIDE, Math.min(margin ? FARTHEST : WIDEST, wide));
  const at = new Map();
  let x = gutter;
  for (const column of columns) {
    column.w = column.stub ? stubWide : step;
    column.x = Math.round(x + (margin || column.stub ? column.w / 2 : Math.min(column.w / 2, 52)));
    x += column.w;
    for (const id of column.members) at.set(id, column);
  }
  return { columns, at, step, margin, right: x, labelX: x + 8 };
}

/** Columns in the order of the tree; neighbours that are not kept share a stub. */
function grouped(order, keep) {
  const columns = [];
  for (const id of order) {
    const last = columns.at(-1);
    if (keep.has(id)) columns.push({ id, members: [id], stub: false });
    else if (id === "") continue;
    else if (last?.stub) last.members.push(id);
    else columns.push({ id: null, members: [id], stub: true });
  }
  return columns;
}

/** Goes down the page, row by row. */
class Pen {
  constructor(layout, log, { hidden, focus, row }) {
    this.layout = layout;
    this.log = log;
    this.row = row;
    this.y = row;
    this.last = null;
    this.numbers = []; // journal numbers of the rows, ascending, and where they stand
    this.lanes = new Map(); // session -> the bars in its lanes
    this.drawn = new Map(); // call -> its bar
    const calls = !hidden.has("calls");
    this.bars = log.bars.filter((bar) => calls && (focus === null || bar.session === focus));
    this.byCall = new Map(this.bars.map((bar) => [bar.call, bar]));
    this.xs = layout.columns.map((column) => column.x);
  }

  /** Bars that began above the first row. */
  early(first) {
    for (const bar of this.bars)
      if (bar.begun < first && !(endOf(bar) < first)) this.bar(bar, first, 0);
  }

  bar(bar, n, y1) {
    const column = this.layout.at.get(bar.session);
    if (!column) return null;
    const lanes = this.lanes.get(bar.session) ?? [];
    this.lanes.set(bar.session, lanes);
    let lane = lanes.findIndex((other) => endOf(other) < n);
    if (lane < 0) lane = lanes.length;
    lanes[lane] = bar;
    const drawn = { bar, lane, x: column.x + 4 + lane * LANE, y1 };
    this.layout.bars.push(drawn);
    this.drawn.set(bar.call, drawn);
    return drawn;
  }

  /** How far to the right the bars of a session reach at row `n`. */
  clear(session, n) {
    const lanes = this.lanes.get(session) ?? [];
    for (let lane = lanes.length; lane > 0; lane--)
      if (endOf(lanes[lane - 1]) >= n) return 4 + lane * LANE;
    return 0;
  }

  mark({ mark, birth }) {
    const { at } = this.layout;
    const { t } = mark;
    if (this.last !== null && t - this.last > SILENCE) {
      this.layout.silences.push({ y: this.y - this.row / 2 + GAP / 2, seconds: t - this.last });
      this.y += GAP;
    }
    this.last = t;
    const a = at.get(source(mark));
    const b = at.get(target(mark));
    const x2 = b.x;
    const drawn = { mark, y: this.y, a, b, x1: a.x, x2, dir: Math.sign(x2 - a.x), birth, lx: 0, room: 0, anchor: "start" };
    this.layout.rows.push(drawn);
    this.numbers.push(mark.n);
    this.y += this.row;
    if (birth && !b.stub) b.top = drawn.y;
    if (mark.what === "close" && !b.stub) b.bottom = drawn.y;
    const skip = mark.what === "call" ? this.call(drawn) : this.clear(source(mark), mark.n);
    if (mark.what === "result") drawn.x1 = a.x + Math.max(8, skip);
    this.label(drawn, skip);
  }

  call(drawn) {
    const bar = this.byCall.get(drawn.mark.id);
    const made = bar && this.bar(bar, drawn.mark.n, drawn.y - 6);
    return made ? made.x + 5 - drawn.a.x : 8;
  }

  /** Labels hang at the sender, clear of its bars, and may run one column past the receiver. */
  label(drawn, skip) {
    const { gutter, labelX, margin, step, width } = this.layout;
    const { dir, mark, x1, x2 } = drawn;
    const edge = width - 8;
    if (margin) {
      drawn.lx = labelX;
      drawn.room = edge - labelX;
    } else if (dir > 0) {
      drawn.lx = x1 + 10 + skip;
      drawn.room = Math.min(edge, x2 + step - 20) - drawn.lx;
    } else if (dir < 0) {
      drawn.lx = x1 - 10;
      drawn.room = drawn.lx - Math.max(gutter, x2 - step + 20);
      drawn.anchor = "end";
    } else this.aside(drawn, Math.max(x1, x2, x1 + skip) + (ASIDE[mark.what] ?? 12), edge);
  }

  /** The label of what concerns one lifeline: beside it, on the left where the right is too near. */
  aside(drawn, lx, edge) {
    const { step } = this.layout;
    const next = this.xs.find((x) => x > lx + 24) ?? edge + step;
    drawn.lx = lx;
    drawn.room = Math.min(edge, next + step - 24) - lx;
    if (drawn.room > 72) return;
    drawn.lx = drawn.x1 - 10;
    drawn.room = step - 20;
    drawn.anchor = "end";
  }

  /** The place just below the last row at or before journal row `n`. */
  after(n) {
    let [low, high] = [0, this.numbers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.numbers[middle] <= n) low = middle + 1;
      else high = middle;
    }
    return low ? this.layout.rows[low - 1].y + this.row / 2 - 2 : 4;
  }

  finish() {
    const { layout } = this;
    const bottom = this.y + 4;
    layout.height = bottom;
    for (const drawn of layout.bars) {
      const { bar } = drawn;
      const end = endOf(bar);
      drawn.open = end === Infinity;
      drawn.y2 = drawn.open ? bottom : Math.max(drawn.y1 + 10, this.after(end) - (bar.returned ? 12 : 0));
      if (bar.detached)
        drawn.turned = Math.min(Math.max(drawn.y1 + 6, this.after(bar.detached)), drawn.y2);
    }
    const begun = new Map();
    for (const run of this.log.runs) {
      const column = layout.at.get(run.session);
      if (!column || column.stub) continue;
      if (begun.has(run.session)) begun.get(run.session).push(run.begun);
      else begun.set(run.session, [run.begun]);
      const y1 = this.after(run.begun) - 2;
      const y2 = run.ended ? Math.max(y1 + 6, this.after(run.ended) - 2) : bottom;
      if (y2 > 8) layout.runs.push({ x: column.x, y1, y2, open: !run.ended });
    }
    this.lifelines(begun, bottom);
  }

  /** Where a lifeline begins and ends, and where it was paused or had failed. */
  lifelines(begun, bottom) {
    for (const column of this.layout.columns) {
      column.top ??= 0;
      column.bottom ??= bottom;
    }
    this.layout.marred = [];
    const open = new Map();
    const end = (id, y2) => {
      const begin = open.get(id);
      open.delete(id);
      if (begin) this.layout.marred.push({ ...begin, y2 });
    };
    for (const { mark, y, b } of this.layout.rows) {
      const id = target(mark);
      const begin = open.get(id);
      const again = begin && (begun.get(id) ?? []).find((n) => n > begin.n && n <= mark.n);
      if (again || (begin && mark.what === "close")) end(id, again ? this.after(again) : y);
      const paused = mark.what === "control" && mark.label === "pause";
      if (b.stub || !(paused || mark.what === "failed")) continue;
      end(id, y);
      open.set(id, { x: b.x, y1: y, n: mark.n, kind: paused ? "now" : mark.tone });
    }
    for (const [id, begin] of open) {
      const again = (begun.get(id) ?? []).find((n) => n > begin.n);
      end(id, again ? this.after(again) : bottom);
    }
  }
}

/** The journal row a call's bar ends at; a detached one lasts until its result came back. */
function endOf(bar) {
  return bar.returned ?? bar.ended ?? Infinity;
}

/** The place of the last row at or before journal row `n`; -1 when there is none. */
export function rowAt(layout, n) {
  let [low, high] = [0, layout.rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (layout.rows[middle].mark.n <= n) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The rows between two heights: from and to, as places. */
export function between(layout, top, bottom) {
  const { rows } = layout;
  const find = (y) => {
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].y < y) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return [find(top), find(bottom)];
}
