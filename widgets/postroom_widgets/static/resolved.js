// What was answered or needs nobody any more: one muted line each, its evidence folded away.

import { evidence, valuesOf } from "./cards.js";
import { clock, h, icon } from "./kit.js";

const LINES = 12; // lines before the rest is asked for
const MORE = 50;
const ENDS = { ok: "check", bad: "x", sys: "clock" };
const ICONS = { failed: "warn", budget: "gauge", notice: "bell" };

const about = (row) =>
  row.face === "approval" ? [row.name, row.tool].filter(Boolean).join(" · ") : row.title;

function line(row, unfolded) {
  const drawing = row.face === "approval" ? ENDS[row.end] : ICONS[row.face];
  const summary = h(
    "summary.old",
    { "data-k": row.end },
    icon(drawing),
    h("span.w.clip", {}, about(row)),
    h("span.o.clip", { title: row.outcome }, row.outcome),
    row.fresh ? h("span.new", { title: "new", role: "img", "aria-label": "new" }) : h("span"),
    h("span.meta", {}, clock(row.ended ?? row.at)),
  );
  const ontoggle = ({ target }) => (target.open ? unfolded.add(row.key) : unfolded.delete(row.key));
  return h(
    "details.line",
    { ontoggle, open: unfolded.has(row.key) },
    summary,
    h("div.body", {}, evidence(row), valuesOf(row.args), row.id && h("span.id", {}, row.id)),
  );
}

export class Resolved {
  constructor(view) {
    this.view = view;
    this.unfolded = new Set();
    this.most = LINES;
    this.words = h("span");
    this.summary = h("summary.all", {}, h("span.chev", {}, icon("chev")), this.words);
    this.lines = h("div");
    this.root = h("details.done", { open: true }, this.summary, this.lines);
  }

  draw(rows, earlier) {
    this.root.hidden = !rows.length;
    this.words.textContent = `${rows.length + earlier} resolved`;
    const left = rows.length - this.most;
    const seen = JSON.stringify([rows.slice(0, this.most), left, earlier, this.view.closed]);
    if (seen === this.seen) return;
    this.seen = seen;
    const more = h("button.older", { type: "button", onclick: () => this.show() }, `Show ${Math.min(left, MORE)} more`);
    const kept = `${earlier} earlier in the room file`;
    this.lines.replaceChildren(
      ...rows.slice(0, this.most).map((row) => line(row, this.unfolded)),
      ...(left > 0 && !this.view.saved ? [more] : []),
      ...(earlier > 0 && left <= 0 ? [h("p.meta.kept", {}, kept)] : []),
    );
  }

  show() {
    this.most += MORE;
    this.view.draw();
  }
}
