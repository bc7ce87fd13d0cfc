// Draws the parts of a sequence diagram as SVG. What people wrote reaches it as text nodes only.

import { factsOf, labelOf, textOf, who } from "./filing.js";
import { clock, span } from "./kit.js";

const SVG_NS = "http://www.w3.org/2000/svg";
const BAD = new Set(["failed", "timed_out", "cancelled", "orphaned", "denied"]);
const LOUD = new Set(["refused", "failed"]);
const QUIET = new Set(["spawn", "close", "watched", "timer", "control", "system"]);

/** An SVG element; empty attributes and children are left out. */
export function s(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElementNS(SVG_NS, name);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value);
  element.append(...children.flat(Infinity).filter(Boolean));
  return element;
}

/** Measures and cuts text to pixels; guesses where the page cannot measure. */
export class Ruler {
  constructor(font = "sans-serif", mono = "monospace") {
    this.fonts = { plain: `11px ${font}`, bold: `600 11px ${font}`, mono: `11px ${mono}` };
    this.canvas = document.createElement("canvas").getContext?.("2d") ?? null;
    this.known = new Map();
  }

  width(text, style = "plain") {
    const key = `${style} ${text}`;
    if (!this.known.has(key)) {
      if (this.known.size > 5000) this.known.clear();
      if (this.canvas) this.canvas.font = this.fonts[style];
      this.known.set(key, this.canvas?.measureText(text).width ?? text.length * 6.4);
    }
    return this.known.get(key);
  }

  /** As much of `text` as fits, cut with `…`; "" if next to nothing would be left. */
  fit(text, room, style = "plain") {
    if (room < 14) return "";
    const whole = text.slice(0, Math.ceil(room / 2.5));
    if (whole === text && this.width(text, style) <= room) return text;
    let [low, high] = [0, whole.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.width(`${whole.slice(0, middle).trimEnd()}…`, style) <= room) low = middle;
      else high = middle - 1;
    }
    return low > 1 ? `${whole.slice(0, low).trimEnd()}…` : "";
  }
}

// ── Lifelines and what lies on them ──

export function drawHeads(layout, names, lines, ruler, unfold) {
  const { columns, margin, width } = layout;
  const longest = Math.max(0, ...columns.map((c) => (c.stub ? 0 : ruler.width(named(c, names), "bold"))));
  const height = margin ? Math.round(Math.min(72, Math.max(36, longest * 0.76 + 18))) : 40;
  const svg = s("svg.seq.heads", { width, height, "aria-hidden": "true" });
  for (const column of columns) {
    const { stub, w, x } = column;
    const kind = stub ? "text.ha.stub" : "text.hn";
    const name = stub ? `+${column.members.length}` : named(column, names);
    let label;
    if (margin) {
      const turned = `translate(${x + 3} ${height - 7}) rotate(-48)`;
      label = s(kind, { transform: turned }, stub ? name : ruler.fit(name, (height - 14) / 0.74, "bold"));
    } else {
      const agent = lines.get(column.id)?.agent;
      const twice = agent && agent !== name;
      label = s(kind, { x, y: twice ? 17 : 25, "text-anchor": "middle" }, stub ? name : ruler.fit(name, 1.08 * w - 20, "bold"));
      if (twice) svg.append(s("text.ha", { x, y: 31, "text-anchor": "middle" }, ruler.fit(agent, w - 12)));
    }
    const told = stub ? column.members.map((id) => names.get(id)).join(", ") : name;
    label.append(s("title", {}, stub ? `Show ${told}` : told));
    if (stub) label.addEventListener("click", () => unfold(column.members));
    svg.append(label);
  }
  return svg;
}

const named = (column, names) => names.get(column.id) ?? "";

/** Everything below the arrows, between two heights. */
export function drawGround(layout, top, bottom) {
  const seen = (y1, y2) => y2 >= top && y1 <= bottom;
  const line = (kind, x, y1, y2) => seen(y1, y2) && s(kind, { x1: x, x2: x, y1, y2 });
  return [
    layout.columns.map((c) => [
      c.top > 0 && line("line.lf.pre", c.x, 0, c.top),
      line(c.stub ? "line.lf.stub" : "line.lf", c.x, c.top, c.bottom),
    ]),
    layout.marred.map(({ x, y1, y2, kind }) => {
      const drawn = line("line.lf.marred", x, y1, y2);
      if (drawn) drawn.dataset.k = kind;
      return drawn;
    }),
    layout.silences.map(
      ({ y, seconds }) =>
        seen(y, y) && [
          s("line.silence", { x1: layout.gutter - 4, x2: layout.right, y1: y, y2: y }),
          s("text.tm", { x: layout.gutter - 12, y: y + 4, "text-anchor": "end" }, span(seconds)),
        ],
    ),
    layout.runs.map(
      ({ x, y1, y2 }) => seen(y1, y2) && s("rect.act", { x: x - 2, y: y1, width: 4, height: y2 - y1, rx: 1 }),
    ),
    layout.bars.map((drawn) => seen(drawn.y1, drawn.y2) && drawBar(drawn)),
  ];
}

function drawBar({ bar, open, turned, x, y1, y2 }) {
  const part = (kind, top, end, rx = 1.5) => s(`rect.cb.${kind}`, { x, y: top, width: 5, height: Math.max(3, end - top), rx });
  return [
    part("att", y1, turned ?? y2),
    turned && turned < y2 && part("det", turned, y2, 1),
    !open && BAD.has(bar.state) && s("rect.cb.bad", { x: x - 1, y: y2 - 5, width: 7, height: 6, rx: 1 }),
  ];
}

// ── Rows ──

/** One row: its time, its arrow and its words, as one thing to point at. */
export function drawRow(drawn, { layout, names, ruler, at, size, time }) {
  const { mark, y } = drawn;
  const { gutter } = layout;
  const group = s("g.msg", {
    role: "listitem",
    tabindex: -1,
    "data-key": mark.key,
    "data-k": mark.tone,
    "aria-posinset": at + 1,
    "aria-setsize": size,
    "aria-label": spoken(mark, names),
  });
  group.append(s("rect.hit", boxOf(drawn, layout)));
  if (time) group.append(s("text.tm", { x: gutter - 12, y: y + 4, "text-anchor": "end" }, time));
  // Words first: an arrow's head lies over the words that reach it.
  for (const part of [words(drawn, { layout, names, ruler }), arrowOf(drawn)].flat(Infinity))
    if (part) group.append(part);
  return group;
}

function boxOf({ y }, { gutter, row, width }) {
  return { x: gutter - 6, y: y - row / 2, width: width - gutter + 4, height: row, rx: 3 };
}

/** The colour behind a row that is selected, belongs to the one selected, or is let through next. */
export function drawBand(drawn, layout, kind, tone = drawn.mark.tone) {
  return s(`rect.band.${kind}`, { ...boxOf(drawn, layout), "data-k": tone });
}

/** What a row is called by those who do not see it. */
export function spoken(mark, names) {
  const told = [clock(mark.at), who(mark, names).replace("→", "to"), ...factsOf(mark)];
  if (LOUD.has(mark.what) && mark.text) told.push(labelOf(mark)); // why, and then what it was
  return `${told.join(", ")}: ${textOf(mark).slice(0, 300)}`;
}

function words({ mark, y, lx, room, anchor, dir }, { layout, names, ruler }) {
  const mono = mark.what === "call";
  const heavy = mark.what === "interrupt" && mark.tone === "now";
  const loud = LOUD.has(mark.what) || heavy;
  const style = mono ? "mono" : loud ? "bold" : "plain";
  const toned = loud || mono || (mark.what === "approval" && mark.tone !== "sys");
  const kind = `text.lab.halo${mono ? ".mono" : ""}${toned ? ".k" : ""}${loud ? ".b" : ""}${QUIET.has(mark.what) ? ".q" : ""}`;
  const { margin } = layout;
  const place = { x: lx, y: margin || !dir ? y + 4 : y - 4, "text-anchor": anchor === "end" ? "end" : null };
  if (!margin || mono) return s(kind, place, ruler.fit(labelOf(mark), room, style));
  const name = ruler.fit(who(mark, names), Math.min(room * 0.55, 150));
  const wide = name ? ruler.width(name) + 7 : 0;
  return [
    s("text.who.halo", place, name),
    s(kind, { ...place, x: lx + wide }, ruler.fit(labelOf(mark), room - wide, style)),
  ];
}

function arrowOf(drawn) {
  const { a, b, birth, dir, mark, x1, x2, y } = drawn;
  switch (mark.what) {
    case "call":
      return null;
    case "close":
      return s("path.ar.sys", { d: cross(x1, y) });
    case "failed":
      return s("rect.solid", { x: x1 - 4, y: y - 4, width: 8, height: 8, transform: `rotate(45 ${x1} ${y})` });
    case "refused":
      if (!dir) return [s("path.ar.ref", { d: `M${x1 + 3} ${y}h8` }), s("path.ar", { d: cross(x1 + 15, y) })];
      return [
        s("path.ar.ref", { d: `M${x1 + dir * 3} ${y}H${x2 - dir * 18}` }),
        s("path.ar", { d: cross(x2 - dir * 12, y) }),
      ];
    case "result":
      return [s("path.ar", { d: hook(x1, x2, y) }), head(x2 + 3, y + 5, -1, mark.unread)];
  }
  if (!dir && a.stub) return [s("path.ar", { d: hook(x1, x2, y) }), head(x2 + 3, y + 5, -1, mark.unread)];
  if (!dir)
    return [
      s("circle.solid", { cx: x2 - 18, cy: y, r: 2.5 }),
      s("path.ar", { d: `M${x2 - 18} ${y}H${x2 - 10}` }),
      head(x2 - 3, y, 1, mark.unread),
    ];
  const ring = birth && !b.stub;
  const end = x2 - dir * (ring ? 5 : 3);
  const made = ring && s("circle.ring", { cx: x2, cy: y, r: 4 });
  if (mark.what === "spawn") return [s("path.ar.spawn", { d: `M${x1 + dir * 3} ${y}H${end}` }), made];
  const heavy = mark.what === "interrupt" && mark.tone === "now";
  const weight = heavy ? ".int" : mark.what === "watched" ? ".spawn" : mark.what === "answer" ? ".ret" : "";
  return [
    s(`path.ar${weight}`, { d: `M${x1 + dir * 3} ${y}H${end - dir * 7}` }),
    head(end, y, dir, mark.unread),
    made,
  ];
}

function head(x, y, dir, unread) {
  return s(unread ? "path.hd.open" : "path.hd", {
    d: `M${x - dir * 8} ${y - 4}L${x} ${y}L${x - dir * 8} ${y + 4}z`,
  });
}

const cross = (x, y) => `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`;

/** From the end of a call's bar back to its own lifeline. */
function hook(x1, x2, y) {
  return `M${x1} ${y - 5}H${Math.max(x1, x2) + 14}V${y + 5}H${x2 + 10}`;
}

/** The place in time: what is later lies under a veil. */
export function drawCursor({ mark, y }, { gutter, height, row, width }) {
  const line = y + row / 2 - 3;
  return [
    s("rect.veil", { x: 0, y: line, width, height: Math.max(0, height - line) }),
    s("line.cur", { x1: 0, x2: width, y1: line, y2: line }),
    s("rect.curtag", { x: 2, y: y - 9, width: gutter - 10, height: 17, rx: 3 }),
    s("text.curtx", { x: gutter / 2 - 3, y: y + 4, "text-anchor": "middle" }, time(mark, gutter)),
  ];
}

/** The time of a row, as much of it as the gutter holds. */
export function time(mark, gutter) {
  return clock(mark.at).slice(gutter < 60 ? 3 : 0);
}

/** The small drawings of the key. */
export function keySigns() {
  const sign = (...parts) => s("svg.seq.sign", { width: 20, height: 12, viewBox: "0 -6 20 12", "aria-hidden": "true" }, parts);
  const arrow = (open) => [s("path.ar", { d: "M0 0H12" }), head(19, 0, 1, open)];
  return [
    ["agent", sign(arrow(false)), "read"],
    ["agent", sign(arrow(true)), "not read yet"],
    ["now", sign(s("path.ar.int", { d: "M0 0H12" }), head(19, 0, 1, false)), "interrupt"],
    ["bad", sign(s("path.ar.ref", { d: "M0 0H10" }), s("path.ar", { d: cross(15, 0) })), "refused"],
    ["sys", sign(s("path.ar.spawn", { d: "M0 0H11" }), s("circle.ring", { cx: 15, cy: 0, r: 3.5 })), "spawned"],
    ["sys", sign(s("rect.act", { x: 8, y: -5, width: 4, height: 10, rx: 1 })), "run"],
    ["tool", sign(s("rect.cb.att", { x: 8, y: -5, width: 5, height: 10, rx: 1 })), "call"],
    ["tool", sign(s("rect.cb.det", { x: 8, y: -5, width: 5, height: 10, rx: 1 })), "detached"],
  ];
}
