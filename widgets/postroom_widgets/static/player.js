// Above the diagram: what is shown of it, the place in time, its size, and how to take it away.

import { GROUPS, groupOf } from "./filing.js";
import { clock, h, icon, settle } from "./kit.js";
import { copy, save, toMermaid, toSvg } from "./keeping.js";

const TOLD_MS = 2000;

export class Player {
  constructor(diagram, title) {
    this.diagram = diagram;
    this.title = title;
    this.kept = new Map(); // the chips made so far
    this.chips = h("div.chips", { role: "group", "aria-label": "kinds shown" });
    const small = (drawing, label, onclick) =>
      h("button.btn.bare.small.icon", { type: "button", "aria-label": label, title: label, onclick }, icon(drawing));
    this.back = small("prev", "Step back (←)", () => diagram.seek(diagram.place() - 1));
    this.play = small("play", "Play (space)", () => diagram.play());
    this.ahead = small("next", "Step (→)", () => diagram.seek(diagram.place() + 1));
    this.range = h("input.play", {
      type: "range",
      min: 0,
      "aria-label": "time",
      oninput: () => diagram.seek(Number(this.range.value)),
    });
    this.less = small("minus", "Rows closer (−)", () => diagram.zoom(-1));
    this.more = small("plus", "Rows wider (+)", () => diagram.zoom(1));
    this.mermaid = small("copy", "Copy as Mermaid", () => this.copyMermaid());
    this.svg = small("save", "Save as SVG", () => this.saveSvg());
    this.told = h("span.told.meta", { role: "status" });
    const group = (name, ...parts) => h("div.grp", { role: "group", "aria-label": name }, parts);
    this.controls = h(
      "div.controls",
      {},
      group("time", this.back, this.play, this.ahead, this.range),
      group("size", this.less, this.more),
      group("export", this.mermaid, this.svg),
    );
    this.root = h("div.tools", {}, this.chips, this.told, this.controls);
  }

  draw(log, saved) {
    const counts = new Map();
    for (const mark of log.marks) counts.set(groupOf(mark), (counts.get(groupOf(mark)) ?? 0) + 1);
    const shown = GROUPS.filter(([id]) => counts.get(id));
    settle(
      this.chips,
      shown.map(([id, word, tone]) => this.chip(id, word, tone, counts.get(id), saved)),
    );
    this.controls.hidden = saved;
    this.moved();
  }

  chip(id, word, tone, count, saved) {
    const key = `${id} ${saved}`;
    if (!this.kept.has(key)) {
      const parts = [word, h("span.n")];
      const button = { type: "button", onclick: () => this.toggle(id) };
      this.kept.set(
        key,
        h(saved ? "span.fchip" : "button.fchip", { "data-k": tone, ...(saved ? {} : button) }, parts),
      );
    }
    const chip = this.kept.get(key);
    chip.lastElementChild.textContent = count;
    if (!saved) chip.setAttribute("aria-pressed", String(!this.diagram.hidden.has(id)));
    return chip;
  }

  toggle(id) {
    const { hidden } = this.diagram;
    if (!hidden.delete(id)) hidden.add(id);
    this.diagram.draw(true);
    this.diagram.on.moved();
    this.diagram.on.filtered();
  }

  /** Say where time stands. */
  moved() {
    const { diagram, range } = this;
    const rows = diagram.layout?.rows ?? [];
    const at = rows.length ? diagram.place() : 0;
    range.max = Math.max(0, rows.length - 1);
    range.value = at;
    range.setAttribute("aria-valuetext", rows[at] ? clock(rows[at].mark.at) : "");
    const none = rows.length < 2;
    range.disabled = this.play.disabled = none;
    this.back.disabled = none || at <= 0;
    this.ahead.disabled = none || at >= rows.length - 1;
    this.less.disabled = !diagram.canZoomOut;
    this.more.disabled = !diagram.canZoomIn;
    const playing = Boolean(diagram.playing);
    if (playing === this.playing) return;
    this.playing = playing;
    this.play.replaceChildren(icon(playing ? "pause" : "play"));
    const label = playing ? "Pause playing (space)" : "Play (space)";
    this.play.setAttribute("aria-label", label);
    this.play.title = label;
  }

  tell(words) {
    this.told.textContent = words;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.told.textContent = ""), TOLD_MS);
  }

  async copyMermaid() {
    const { layout, log } = this.diagram;
    const shown = new Set(layout.rows.map(({ mark }) => mark.key));
    const marks = log.marks.filter((mark) => shown.has(mark.key));
    const done = await copy(toMermaid(log, { marks, bars: layout.bars.map(({ bar }) => bar) }));
    this.tell(done ? "Copied as Mermaid" : "The page may not copy");
  }

  saveSvg() {
    save(`${this.title() || "room"}.svg`, toSvg(this.diagram), "image/svg+xml");
    this.tell("Saved as SVG");
  }
}
