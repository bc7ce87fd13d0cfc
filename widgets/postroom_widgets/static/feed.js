// The feed: rows by key, the last 500 on the page. It follows the end if you are there already.

import { h, plural } from "./kit.js";
import { element, lost } from "./rows.js";

export const PAGE = 500;
const NEAR_END_PX = 24;
const PATIENCE_MS = 150; // words that are confirmed sooner were never in doubt
const FLASH_MS = 1600;

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
    this.limit = PAGE;
    this.shown = new Map(); // key -> { row, element }
    this.rows = h("div.rows");
    this.older = h("button.older", { type: "button", onclick: () => this.showOlder() });
    this.divider = h("div.mark", { "data-k": "user", role: "separator" }, h("b"), h("span.w"));
    this.lost = h("div.losts");
    this.empty = h("div.empty");
    this.root = h(
      "div.feed",
      { role: "log", "aria-live": "polite", tabindex: 0, onkeydown: (event) => this.key(event) },
      this.older,
      this.empty,
      this.rows,
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
      mail: (id) => this.store.list().find((row) => row.id === id && row.kind === "mail")?.key,
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
    const rows = all.slice(-this.limit);
    const closed = store.closed;
    if (closed !== context.closed) this.shown.clear(); // what could be pressed cannot any more
    Object.assign(context, { closed, name: store.head.name });
    const wanted = [];
    for (const row of rows) wanted.push(this.elementOf(row));
    this.lay(wanted, rows);
    this.drawOlder(store.earlier + all.length - rows.length);
    this.drawLost();
    this.drawEmpty(!all.length);
    this.root.setAttribute("aria-label", `conversation of ${store.head.name}`);
    this.settle();
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
      const n = rows.length - first;
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
    const alive = new Set(rows.map((row) => row.key));
    for (const key of this.shown.keys()) if (!alive.has(key)) this.shown.delete(key);
    if (focused && this.focusedKey() !== focused)
      this.shown.get(focused)?.element.focus({ preventScroll: true });
  }

  drawOlder(n) {
    this.older.hidden = n <= 0 || (this.store.closed && this.store.list().length <= this.limit);
    this.older.textContent = `Show ${plural(n, "earlier entry", "earlier entries")}`;
  }

  showOlder() {
    const { store } = this;
    const hidden = store.list().length - this.limit;
    this.limit += PAGE;
    if (hidden < PAGE && store.earlier) store.older(PAGE);
    this.keepFrom = this.root.scrollHeight - this.root.scrollTop;
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
    this.atEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    this.at = scrollTop;
  }

  /** After a change: stay at the end, or at the same rows. */
  settle() {
    if (this.keepFrom) this.root.scrollTop = this.root.scrollHeight - this.keepFrom;
    else if (this.atEnd) this.root.scrollTop = this.root.scrollHeight;
    this.keepFrom = 0;
  }

  /** After the feed was moved on the page: go where it was. */
  restore() {
    this.root.scrollTop = this.atEnd ? this.root.scrollHeight : (this.at ?? 0);
  }

  jump(key) {
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
    if (event.target !== this.root && !event.target.dataset?.key) return; // inside a row, keys are the row's
    const entries = [...this.rows.children].filter((child) => child.hasAttribute("tabindex"));
    const at = entries.indexOf(event.target);
    const steps = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? entries.length - 1 : at - 1,
      Home: 0,
      End: entries.length - 1,
    };
    if (event.key in steps) entries[steps[event.key]]?.focus();
    else if (event.key === "Enter") event.target.querySelector("summary, .more")?.click();
    else if (event.key.toLowerCase() === "r" && !event.ctrlKey && !event.metaKey && !event.altKey)
      event.target.querySelector(".reply")?.click();
    else return;
    event.preventDefault();
  }
}
