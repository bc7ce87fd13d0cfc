// The feed: rows by key, some hundred of them on the page. It follows the end if you are there
// already, and stays with what you read if you are not.

import { h, plural } from "./kit.js";
import { grown, Range, STEP } from "./range.js";
import { element, lost } from "./rows.js";

const NEAR_END_PX = 24;
const PATIENCE_MS = 150; // words that are confirmed sooner were never in doubt
const FLASH_MS = 1600;
const FETCH = 200; // rows, the most the kernel sends at once
const DRAW_MS = 5; // of one frame; what does not fit is drawn in the next

const MODE_WORDS = {
  paused: "read after Resume",
  failed: "read after Resume",
  running: "read when this turn ends",
  waiting: "read when this turn ends",
};

/** Why pending words have not arrived. */
function lostWords(store, item) {
  if (store.link === "gone" || store.link === "saved") return "not delivered: session gone";
  if (store.link === "over") return "not delivered: the room is closed";
  if (item.state === "lost") return "not confirmed before the kernel restarted";
  return store.link === "busy" ? "not delivered yet: kernel busy" : "not delivered yet";
}

export class Feed {
  constructor(store, actions) {
    this.store = store;
    this.range = new Range();
    this.shown = new Map(); // key -> { row, element }
    this.rows = h("div.rows");
    this.older = h("button.older", { type: "button", onclick: () => this.showOlder() });
    this.newer = h("button.older", { type: "button", onclick: () => this.showNewer() });
    this.divider = h("div.mark", { "data-k": "user", role: "separator" }, h("b"), h("span.w"));
    this.lost = h("div.losts");
    this.empty = h("div.empty");
    this.root = h(
      "div.feed",
      { role: "log", "aria-live": "polite", tabindex: 0, onkeydown: (event) => this.key(event) },
      this.older,
      this.empty,
      this.rows,
      this.newer,
      this.lost,
    );
    this.root.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.atEnd = true;
    // Narrower rows are higher: whoever was at the end stays there.
    if (globalThis.ResizeObserver) new ResizeObserver(() => this.settle()).observe(this.root);
    this.context = {
      ...actions,
      unfolded: new Set(),
      asking: new Map(), // key of a call -> the form that is open in it
      name: "",
      closed: false,
      jump: (key) => this.jump(key),
      redraw: (key) => {
        this.shown.delete(key);
        this.draw();
      },
      focus: (key, selector) => this.shown.get(key)?.element.querySelector(selector)?.focus(),
    };
  }

  draw() {
    const { store, context } = this;
    const all = store.list();
    const closed = store.closed;
    if (closed !== context.closed) this.shown.clear(); // what could be pressed cannot any more
    Object.assign(context, { closed, name: store.head.name });
    const keep = this.atEnd ? null : this.inSight();
    const [start, stop] = this.range.of(all);
    const [low, high] = this.drawRows(all, start, stop, this.pivot(all, start, stop, keep));
    const rows = all.slice(low, high);
    this.lay(
      rows.map((row) => this.shown.get(row.key).element),
      rows,
    );
    this.drawOlder(store.earlier + low, all.length - high);
    this.drawLost();
    this.drawEmpty(!all.length);
    this.root.setAttribute("aria-label", `conversation of ${store.head.name}`);
    this.settle(keep);
    if (low > start || high < stop) this.context.later();
    this.arrive(all);
  }

  /** Make as many rows as one frame can take; the rest come in the next frames. */
  drawRows(all, start, stop, pivot) {
    const until = performance.now() + DRAW_MS;
    this.made = 0;
    return grown(
      pivot,
      start,
      stop,
      (at) => this.elementOf(all[at]),
      () => this.made > 0 && performance.now() > until,
    );
  }

  /** From which row the page grows: the last, the one that is looked for, or the one in sight. */
  pivot(all, start, stop, keep) {
    const key = this.sought ?? keep?.key;
    const at = key ? all.findIndex((row) => row.key === key) : -1;
    return at >= start && at < stop ? at : Math.max(start, stop - 1);
  }

  elementOf(row) {
    const known = this.shown.get(row.key);
    const order = this.store.orders.get(row.key);
    const same = known && known.order === order;
    if (same && known.row === row) return known.element;
    if (same && known.row.kind === row.kind && known.element.update?.(row)) {
      known.row = row;
      return known.element;
    }
    const made = element(this.context, row, order);
    this.made += 1;
    made.classList.add("ent");
    made.dataset.key = row.key;
    if (row.kind !== "mark") made.tabIndex = -1;
    this.shown.set(row.key, { row, order, element: made });
    return made;
  }

  /** Put the elements in order with as few moves as possible, the divider before unread mail. */
  lay(wanted, rows) {
    const first = rows.findIndex((row) => row.state === "queued");
    if (first >= 0) {
      const n = this.store.head.unread || rows.length - first;
      this.divider.children[0].textContent = `${n} unread`;
      this.divider.children[1].textContent = MODE_WORDS[this.store.head.status] ?? "";
      wanted.splice(first, 0, this.divider);
    }
    const keep = new Set(wanted);
    const focused = this.focusedKey();
    for (const child of [...this.rows.children]) if (!keep.has(child)) child.remove();
    let next = this.rows.firstChild;
    for (const child of wanted) {
      if (child === next) next = next.nextSibling;
      else this.rows.insertBefore(child, next);
    }
    const calls = (child) => Boolean(child?.classList.contains("call"));
    wanted.forEach((child, i) => {
      child.classList.toggle("joins", calls(child) && calls(wanted[i + 1]));
      child.classList.toggle("joined", calls(child) && calls(wanted[i - 1]));
    });
    const alive = new Set(rows.map((row) => row.key));
    for (const key of this.shown.keys()) if (!alive.has(key)) this.shown.delete(key);
    if (focused && this.focusedKey() !== focused)
      this.shown.get(focused)?.element.focus({ preventScroll: true });
  }

  drawOlder(above, below) {
    const missing = this.store.closed ? this.store.earlier : 0; // nobody is there to send them
    this.older.hidden = above - missing <= 0;
    this.older.textContent = `Show ${plural(above, "earlier entry", "earlier entries")}`;
    this.newer.hidden = below <= 0;
    this.newer.textContent = `Show ${plural(below, "later entry", "later entries")}`;
  }

  showOlder() {
    const { store, range } = this;
    const all = store.list();
    range.wanted = STEP;
    this.leaveEnd();
    if (range.of(all)[0] === 0 && store.earlier) store.older(STEP);
    this.draw();
  }

  showNewer() {
    this.range.down(this.store.list());
    this.draw();
  }

  /** From now on the page stays where it is. */
  leaveEnd() {
    this.atEnd = false;
    const first = this.rows.querySelector("[data-key]");
    this.range.hold(first && { key: first.dataset.key });
  }

  /** Go to the end, and follow it. */
  toEnd() {
    this.atEnd = true;
    this.range.follow();
    this.draw();
  }

  drawLost() {
    const { store } = this;
    const now = Date.now();
    const items = store.outbox.items.filter(
      (item) =>
        item.state === "lost" || store.link !== "live" || now - Date.parse(item.at) > PATIENCE_MS,
    );
    const drawn = JSON.stringify([items, store.link]);
    if (drawn === this.lostDrawn) return;
    this.lostDrawn = drawn;
    const ours = (item) => item.state === "held" || item.state === "lost" || store.closed;
    this.lost.replaceChildren(
      ...items.map((item) =>
        lost(this.context, { ...item, ours: ours(item), words: lostWords(store, item) }),
      ),
    );
    for (const child of this.lost.children) child.classList.add("ent");
  }

  drawEmpty(empty) {
    this.empty.hidden = !empty || this.store.outbox.items.length > 0;
    if (!empty || this.empty.childElementCount) return;
    const line = h(
      "p.meta",
      {},
      "Write below, or ",
      h("code", {}, `%send ${this.store.head.name} …`),
    );
    this.empty.append(h("p", {}, "No mail yet."), line);
  }

  /** Let the clocks of running calls go on. */
  tick() {
    for (const { element: shown } of this.shown.values()) shown.tick?.();
    this.settle();
  }

  // ── Where you are ──

  scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.root;
    if (!clientHeight) return; // off the page: nobody scrolled
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    this.at = scrollTop;
    if (!atEnd) this.leaveEnd();
    else if (!this.newer.hidden) this.showNewer();
    else if (!this.atEnd) this.toEnd();
  }

  /** The first row in sight, and how far below the top edge it is. */
  inSight() {
    const { scrollTop } = this.root;
    const row = [...this.rows.children].find(
      (child) => child.dataset.key && child.offsetTop + child.offsetHeight > scrollTop,
    );
    return row && { key: row.dataset.key, below: row.offsetTop - scrollTop };
  }

  /** After a change: stay at the end, or with the row that was in sight. */
  settle(keep) {
    const row = keep && this.shown.get(keep.key)?.element;
    if (this.atEnd) this.root.scrollTop = this.root.scrollHeight;
    else if (row?.isConnected) {
      const top = row.offsetTop - keep.below;
      if (Math.abs(top - this.root.scrollTop) >= 1) this.root.scrollTop = top;
    }
  }

  /** After the feed was moved on the page: go where it was. */
  restore() {
    this.root.scrollTop = this.atEnd ? this.root.scrollHeight : (this.at ?? 0);
  }

  // ── Links ──

  /** Which row a link means: by its key, by a mail's id, or by the turn that came of a turn. */
  keyOf(target) {
    const { rows } = this.store;
    const next = target.startsWith("t:") && `t:${Number(target.slice(2)) + 1}`;
    for (const key of [target, next]) if (key && (rows.get(key)?.kind ?? "gone") !== "gone") return key;
    const means = (row) => (row.id === target && row.kind === "mail") || row.sent?.mail === target;
    return this.store.list().find(means)?.key ?? null;
  }

  /** Go to a row, wherever it is; what is not here yet is fetched first. */
  jump(target) {
    this.goal = target;
    this.arrive(this.store.list());
  }

  arrive(all) {
    if (!this.goal) return;
    const key = this.keyOf(this.goal);
    const asked = this.askedAbove === this.store.earlier;
    if (!key && this.store.earlier && !this.store.closed) {
      this.askedAbove = this.store.earlier;
      if (!asked) this.store.older(FETCH); // once for each answer
      return;
    }
    this.goal = this.askedAbove = null;
    if (key) this.goTo(key, all);
  }

  goTo(key, all) {
    if (!this.shown.get(key)?.element.isConnected) {
      this.atEnd = false;
      this.sought = key;
      this.range.around(
        all,
        all.findIndex((row) => row.key === key),
      );
      this.draw();
      this.sought = null;
    }
    const target = this.shown.get(key)?.element;
    if (!target) return;
    target.scrollIntoView({ block: "nearest", behavior: "smooth" });
    target.classList.remove("flash");
    requestAnimationFrame(() => target.classList.add("flash"));
    setTimeout(() => target.classList.remove("flash"), FLASH_MS);
    target.focus({ preventScroll: true });
  }

  // ── Keys: up and down by row, Enter unfolds, R replies ──

  focusedKey() {
    const active = this.root.getRootNode().activeElement;
    return this.rows.contains(active) ? (active.closest("[data-key]")?.dataset.key ?? null) : null;
  }

  key(event) {
    if (event.target !== this.root && !event.target.dataset?.key) {
      // Inside a row, keys are the row's; Escape comes back out to it.
      const row = event.key === "Escape" && event.target.closest("[data-key]");
      if (row && !event.defaultPrevented) row.focus();
      return;
    }
    const { key } = event;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (key === "End") this.toEnd();
    if (this.step(key, event.target)) event.preventDefault();
    else if (key === "Enter") event.target.querySelector("summary, .more")?.click();
    else if (key.toLowerCase() === "r" && plain) event.target.querySelector(".reply")?.click();
    else if (key === "Escape") this.context.leave();
    else return;
    event.preventDefault();
  }

  /** Move the focus by row; up from the first one shows earlier ones. */
  step(key, from) {
    if (!["ArrowDown", "ArrowUp", "Home", "End"].includes(key)) return false;
    const entries = () => [...this.rows.children].filter((child) => child.hasAttribute("tabindex"));
    let at = entries().indexOf(from);
    if (key === "ArrowUp" && at === 0 && !this.older.hidden) {
      this.showOlder();
      at = entries().indexOf(from);
    }
    if (key === "ArrowDown" && at === entries().length - 1 && !this.newer.hidden) {
      this.showNewer();
      at = entries().indexOf(from);
    }
    const list = entries();
    const last = list.length - 1;
    const to = { ArrowDown: at + 1, ArrowUp: at < 0 ? last : at - 1, Home: 0, End: last }[key];
    list[to]?.focus();
    return true;
  }
}
