// The diagram on the page: it scrolls, draws the rows in view only, and goes by keys.

import { drawBand, drawCursor, drawGround, drawHeads, drawRow, Ruler, s, time } from "./drawing.js";
import { h, settle } from "./kit.js";
import { between, layOut, rowAt } from "./sequence.js";

const SPARE = 480; // pixels drawn above and below what is in view
const AT_END = 12;
const ROWS = [18, 20, 24, 28, 32];
const PLAY_MS = 500;
const TOLD_AGAIN = 12; // rows after which a time is said again

export class Diagram {
  /** `on` is told of what is selected (`pick`) and of a new place in time (`moved`). */
  constructor(on) {
    this.on = on;
    this.log = null;
    this.hidden = new Set();
    this.unfolded = new Set();
    this.focus = null;
    this.selected = null; // key of a mark
    this.cursor = null; // { n, key } of the row time stands at; null: now
    this.row = 24;
    this.next = ""; // id of the letter that a step lets through
    this.playing = null;
    this.following = true;
    this.cells = new Map(); // key of a mark -> what is drawn of it
    this.heads = h("div.heads");
    this.bands = s("g", { "aria-hidden": "true" });
    this.ground = s("g", { "aria-hidden": "true" });
    this.list = s("g", { role: "list", "aria-label": "mail between sessions" });
    this.veil = s("g", { "aria-hidden": "true" });
    this.svg = s("svg.seq", {}, this.bands, this.ground, this.list, this.veil);
    this.nothing = h("div.empty", { hidden: true });
    this.root = h(
      "div.scroll",
      { role: "group", "aria-label": "sequence diagram", onscroll: () => this.scrolled() },
      this.heads,
      this.svg,
      this.nothing,
    );
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => {
      const key = event.target.closest?.("[data-key]")?.dataset.key;
      if (key) this.pick(key, true);
    });
    this.list.addEventListener("focusin", (event) => {
      const { key } = event.target.dataset;
      if (key && key !== this.selected && !this.quiet) this.pick(key);
    });
  }

  // ── What is shown ──

  show(log) {
    this.log = log;
    this.stale = true;
  }

  /** Lay out anew when something has changed, and draw. */
  draw(changed = false) {
    if (!this.log) return;
    const width = Math.max(260, this.root.clientWidth || 800);
    if (this.stale || changed || width !== this.layout?.width) this.lay(width);
    this.window();
  }

  lay(width) {
    this.ruler ??= this.measure();
    const { focus, hidden, row, unfolded } = this;
    const gutter = width < 520 ? 52 : 72;
    this.stale = false;
    this.layout = layOut(this.log, { width, row, gutter, hidden, focus, unfolded });
    this.lines = new Map(this.log.lines.map((line) => [line.id, line]));
    const { columns, height, rows } = this.layout;
    this.at = new Map(rows.map(({ mark }, i) => [mark.key, i]));
    this.heads.replaceChildren(
      drawHeads(this.layout, this.log.names, this.lines, this.ruler, (ids) => this.unfold(ids)),
    );
    this.heads.hidden = this.svg.hidden = !columns.length || !rows.length;
    this.nothing.hidden = !this.heads.hidden;
    const words = this.log.marks.length ? "Nothing of what is chosen." : "No mail yet.";
    this.nothing.replaceChildren(h("p", {}, words));
    this.svg.setAttribute("width", this.layout.width);
    this.svg.setAttribute("height", Math.ceil(height));
    this.drawn = null;
    if (this.following && this.cursor === null) this.root.scrollTop = this.root.scrollHeight;
  }

  measure() {
    const style = getComputedStyle(this.root);
    const mono = style.getPropertyValue("--jp-code-font-family").trim();
    return new Ruler(style.fontFamily || "sans-serif", mono || "monospace");
  }

  unfold(ids) {
    for (const id of ids) this.unfolded.add(id);
    this.draw(true);
  }

  zoom(by) {
    const at = ROWS.indexOf(this.row) + by;
    if (!ROWS[at]) return;
    const middle = this.root.scrollTop / Math.max(1, this.layout.height);
    this.row = ROWS[at];
    this.draw(true);
    if (!this.following) this.root.scrollTop = middle * this.layout.height;
    this.window();
    this.on.moved();
  }

  get canZoomIn() {
    return this.row < ROWS.at(-1);
  }

  get canZoomOut() {
    return this.row > ROWS[0];
  }

  // ── The part in view ──

  scrolled() {
    const { clientHeight, scrollHeight, scrollTop } = this.root;
    this.following = scrollTop + clientHeight >= scrollHeight - AT_END;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.root.isConnected && this.layout) this.window();
    });
  }

  /** Draw the rows in view; what is drawn and has not changed is left alone. */
  window() {
    const { clientHeight, scrollTop } = this.root;
    const seen = clientHeight || 640;
    const top = Math.max(0, Math.floor((scrollTop - SPARE) / 240) * 240);
    const bottom = top + seen + 2 * SPARE + 240;
    const moment = `${top} ${bottom} ${this.selected} ${this.cursor?.key} ${this.next}`;
    if (this.drawn === moment) return;
    this.drawn = moment;
    const { layout } = this;
    this.ground.replaceChildren(...drawGround(layout, top, bottom).flat(Infinity).filter(Boolean));
    this.rows(...between(layout, top, bottom));
    const at = this.place();
    const there = this.cursor !== null && at >= 0 && at < layout.rows.length - 1;
    this.veil.replaceChildren(...(there ? drawCursor(layout.rows[at], layout) : []));
  }

  rows(from, to) {
    const { layout, log, selected } = this;
    const chosen = log.marks.length && selected ? this.markOf(selected) : null;
    const kept = new Map();
    const bands = [];
    const { gutter, row, rows } = layout;
    for (let i = from; i < to; i++) {
      const drawn = rows[i];
      const { mark } = drawn;
      const told = time(mark, gutter);
      const state = {
        at: i,
        size: rows.length,
        // Said when it changes, and now and then, for whoever has scrolled here.
        time: i % TOLD_AGAIN && time(rows[i - 1].mark, gutter) === told ? "" : told,
      };
      const isSelected = mark.key === selected;
      if (isSelected) bands.push(drawBand(drawn, layout, "sel"));
      else if (this.next && mark.id === this.next) bands.push(drawBand(drawn, layout, "held", "now"));
      else if (chosen && related(mark, chosen)) bands.push(drawBand(drawn, layout, "kin"));
      const { lx, room, x1, x2, y } = drawn;
      const sign = [y, x1, x2, lx, room, row, mark.v, ...Object.values(state)].join(" ");
      const cell = this.cells.get(mark.key) ?? { sign: "", group: null };
      if (cell.sign !== sign) {
        const fresh = drawRow(drawn, { layout, names: log.names, ruler: this.ruler, ...state });
        cell.group = cell.group ? renew(cell.group, fresh) : fresh;
        cell.sign = sign;
      }
      cell.group.classList.toggle("sel", isSelected);
      if (isSelected) cell.group.setAttribute("aria-current", "true");
      else cell.group.removeAttribute("aria-current");
      kept.set(mark.key, cell);
    }
    this.cells = kept;
    this.bands.replaceChildren(...bands);
    settle(this.list, [...kept.values()].map((cell) => cell.group));
    // One of them can be reached with Tab: the one selected, else the last in view.
    const entry = kept.get(selected) ?? [...kept.values()].at(-1);
    for (const cell of kept.values()) cell.group.setAttribute("tabindex", cell === entry ? 0 : -1);
  }

  refocus(key) {
    this.quiet = true;
    this.cells.get(key)?.group.focus({ preventScroll: true });
    this.quiet = false;
  }

  markOf(key) {
    const row = this.layout?.rows[this.at.get(key)];
    return row?.mark ?? this.log?.marks.find((mark) => mark.key === key) ?? null;
  }

  // ── Choosing ──

  /** Select a mark; with `focus` it is gone to. */
  pick(key, focus = false) {
    this.selected = key;
    if (focus) this.reveal(key);
    this.window();
    if (focus) this.refocus(key);
    this.on.pick(key ? this.markOf(key) : null);
  }

  reveal(key) {
    const row = this.layout.rows[this.at.get(key)];
    if (!row) return;
    const { clientHeight, scrollTop } = this.root;
    const head = this.heads.offsetHeight;
    const y = row.y + head;
    if (y - head < scrollTop + 24 || y > scrollTop + clientHeight - 32)
      this.root.scrollTop = Math.max(0, y - clientHeight / 2);
  }

  step(by) {
    const { rows } = this.layout;
    const at = this.at.get(this.selected);
    const to = at === undefined ? (by > 0 ? 0 : rows.length - 1) : at + by;
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (row) this.pick(row.mark.key, true);
  }

  // ── Time ──

  /** The row time stands at; the last one for now. */
  place() {
    const { rows } = this.layout;
    if (this.cursor === null) return rows.length - 1;
    return this.at.get(this.cursor.key) ?? rowAt(this.layout, this.cursor.n);
  }

  seek(at) {
    const { rows } = this.layout;
    const row = rows[Math.max(0, Math.min(rows.length - 1, at))];
    if (!row) return;
    this.cursor = row === rows.at(-1) ? null : { n: row.mark.n, key: row.mark.key };
    this.reveal(row.mark.key);
    this.pick(row.mark.key);
    this.following = this.cursor === null;
    this.on.moved();
  }

  /** Back to now: what comes is followed again. */
  now() {
    this.cursor = null;
    this.following = true;
    this.root.scrollTop = this.root.scrollHeight;
    this.window();
    this.on.moved();
  }

  play(on = !this.playing) {
    clearInterval(this.playing);
    this.playing = null;
    if (on) {
      if (this.cursor === null) this.seek(0);
      this.playing = setInterval(() => {
        this.seek(this.place() + 1);
        if (this.cursor === null || !this.root.isConnected) this.play(false);
      }, PLAY_MS);
    }
    this.on.moved();
  }

  // ── Keys ──

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.layout) return;
    const act = {
      ArrowDown: () => this.step(1),
      ArrowUp: () => this.step(-1),
      ArrowRight: () => this.seek(this.place() + 1),
      ArrowLeft: () => this.seek(this.place() - 1),
      Home: () => this.seek(0),
      End: () => this.now(),
      " ": () => this.play(),
      "+": () => this.zoom(1),
      "=": () => this.zoom(1),
      "-": () => this.zoom(-1),
      Escape: () => this.pick(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    if (event.key !== "Escape" && this.selected) this.refocus(this.selected);
  }
}

/** Draw in `group` what `fresh` is; the element stays, and with it the focus. */
function renew(group, fresh) {
  for (const { name, value } of [...fresh.attributes]) group.setAttribute(name, value);
  group.replaceChildren(...fresh.childNodes);
  return group;
}

/** Whether one mark answers the other. */
function related(mark, chosen) {
  return Boolean((mark.re && mark.re === chosen.id) || (chosen.re && chosen.re === mark.id));
}
