// The inbox view: what waits for its owner, what is to be looked at, what was resolved. No send box.

import { card, expiresIn } from "./cards.js";
import { clock, h, icon, plural } from "./kit.js";
import { Resolved } from "./resolved.js";
import { Shell, widgetOf } from "./shell.js";
import { Wire } from "./wire.js";

const ALL = "";
const SHOWN = 50; // cards of one section before the rest is asked for
const MINUTE_MS = 60000;

class InboxWire extends Wire {
  asked = new Map(); // id of a button's order -> { key, op }

  order(op, key = "", more = {}) {
    const heard = super.order(op, key, more);
    const order = this.orders.get(key);
    if (heard && order?.id) this.asked.set(order.id, { key, op });
    return heard;
  }

  /** An answer whose card has changed meanwhile: whoever was too late is told all the same. */
  settled({ op, id, words }) {
    const asked = this.asked.get(id);
    this.asked.delete(id);
    if (asked && op === "refused") this.orders.set(asked.key, { op: asked.op, words });
  }

  /** Keep where an answer leads; let go of buttons that can be pressed again. */
  answered(message) {
    const found = [...this.orders].find(([, order]) => order.id === message.id);
    super.answered(message);
    if (!found || message.op !== "ack") return;
    const [key, { op }] = found;
    if (op !== "approve" && op !== "deny") this.orders.delete(key);
    if (message.session) this.lead(message);
  }

  /** An answer that leads to a session: it opens below. */
  lead({ session, name }) {
    const view = [...this.views].find(({ root }) => root.isConnected);
    view?.opened.show(session, name);
  }

  idle() {
    const minute = Math.floor(Date.now() / MINUTE_MS);
    if (minute === this.minute) return;
    this.minute = minute;
    this.changed(); // what expires comes nearer
  }
}

/** Make the children of `parent` those `wanted`, and touch none that stays. */
function arrange(parent, wanted) {
  for (const child of [...parent.children]) if (!wanted.includes(child)) child.remove();
  let at = parent.firstChild;
  for (const element of wanted)
    if (element === at) at = at.nextSibling;
    else parent.insertBefore(element, at);
}

class Section {
  constructor(view, live, saved) {
    Object.assign(this, { view, live, savedWords: saved, most: SHOWN });
    this.words = h("h3");
    this.count = h("span");
    this.cards = h("div.cards");
    this.more = h("button.older", { type: "button", onclick: () => this.show() });
    this.root = h("section", {}, h("div.sec", {}, this.words, this.count), this.cards, this.more);
  }

  show() {
    this.most += SHOWN;
    this.view.draw();
  }

  draw(rows) {
    this.root.hidden = !rows.length;
    this.words.textContent = this.view.saved ? this.savedWords : this.live;
    this.count.textContent = rows.length;
    const left = rows.length - this.most;
    this.more.hidden = left <= 0 || this.view.saved;
    this.more.textContent = `Show ${Math.min(left, SHOWN)} more`;
    arrange(this.cards, rows.slice(0, this.most).map((row) => this.view.cardOf(row)));
  }
}

class InboxView extends Shell {
  constructor(store) {
    super(store, `%inbox ${store.head.agent ?? ""}`.trim());
    this.root.classList.add("inbox");
    this.forms = new Map();
    this.drawn = new Map(); // key -> { element, seen }
    this.agent = ALL;
    this.title = h("h2", { tabindex: -1 });
    this.badge = h("span.badge");
    this.status = h("span.unseen", { role: "status" });
    this.keys = h("span.meta.keys", { "aria-hidden": "true" }, this.keyHints());
    this.read = h("button.btn", { type: "button", onclick: () => store.order("read") }, "Mark all read");
    this.head = h("header.head", {}, this.title, this.badge, this.status, h("span.grow"), this.keys, this.read);
    this.told = h("div.told");
    this.chips = h("div.row.picks", { role: "radiogroup", "aria-label": "agent" });
    this.rules = h("button.link.rules", { type: "button", onclick: () => this.toggleRules() });
    this.filters = h("div.flt", {}, this.chips, h("span.grow"), this.rules);
    this.permissions = h("div.permissions", { role: "group", "aria-label": "standing permissions" });
    this.waiting = new Section(this, "Waiting for you", "Was waiting for you");
    this.look = new Section(this, "To look at", "To look at");
    this.nothing = h("div.empty", {}, h("p", {}, "Nothing waits for you."));
    this.nothing.append(h("p.meta", {}, "Approvals, failures and budget stops of your agents land here."));
    this.resolved = new Resolved(this);
    this.root.append(this.head, this.banner, this.told, this.filters, this.permissions);
    this.root.append(this.waiting.root, this.look.root, this.nothing, this.resolved.root, this.foot);
    this.root.addEventListener("keydown", (event) => this.key(event));
  }

  keyHints() {
    const hint = (keys, words) => h("span", {}, h("kbd", {}, keys), ` ${words}`);
    return [hint("J K", "card"), hint("A", "approve"), hint("D", "deny"), hint("E", "edit")];
  }

  get closed() {
    return this.store.closed;
  }

  get saved() {
    return this.store.link === "saved";
  }

  get busyWords() {
    return "A cell is running. What you answer now arrives when it ends or awaits.";
  }

  goneWords() {
    return ["The kernel restarted. Open cards are kept: run ", h("code.mono", {}, this.again), " again to answer them."];
  }

  drawFoot() {
    const { head } = this.store;
    const at = head.at ? `Saved ${clock(head.at)}` : "Saved";
    this.foot.replaceChildren(`${at} without a kernel. Run `, h("code", {}, this.again), " to answer.");
  }

  // ── Drawing ──

  paint() {
    const { head } = this.store;
    const rows = this.store.list().toReversed();
    const open = rows.filter((row) => row.state === "open");
    if (this.agent && !open.some((row) => row.agent === this.agent)) this.agent = ALL;
    const mine = (row) => !this.agent || row.agent === this.agent;
    const shown = open.filter(mine);
    const place = this.place();
    this.drawHead(open);
    this.drawTold();
    this.drawFilters(open, head.permissions ?? []);
    this.drawPermissions(head.permissions ?? []);
    this.waiting.draw(shown.filter((row) => row.face === "approval"));
    this.look.draw(shown.filter((row) => row.face !== "approval"));
    this.nothing.hidden = shown.length > 0;
    this.resolved.draw(rows.filter((row) => row.state === "done" && mine(row)), (head.earlier ?? 0) + (this.saved ? this.store.earlier : 0));
    this.forget();
    this.reach();
    if (place !== null) this.return(place);
  }

  drawHead(open) {
    const { head } = this.store;
    const name = head.agent ? `Inbox of ${head.agent}` : "Inbox";
    this.root.setAttribute("aria-label", head.agent ? `owner inbox of ${head.agent}` : "owner inbox");
    this.title.textContent = name;
    const asks = open.filter((row) => row.face === "approval").length;
    const news = head.news ?? 0;
    const words = [news && `${news} new`, asks && `${plural(asks, "call waits", "calls wait")} for you`];
    const told = this.catchingUp() ?? words.filter(Boolean).join(", ");
    if (this.status.textContent !== told) this.status.textContent = told;
    this.badge.textContent = news > 99 ? "99+" : news;
    this.badge.title = `${news} new`;
    this.badge.hidden = !news || this.saved;
    this.keys.hidden = this.read.hidden = this.saved;
    this.keys.hidden ||= !open.length;
    this.read.disabled = this.closed || !news || this.store.orders.has("");
  }

  /** Tell of answers that came too late: their card has gone on without them. */
  drawTold() {
    const late = [...this.store.orders].filter(
      ([key, { words }]) =>
        words && !key.startsWith("p:") && this.store.rows.get(key)?.state !== "open",
    );
    const said = late.map(([, order]) => order.words).join("\n");
    if (said === this.toldSaid) return;
    this.toldSaid = said;
    const close = () => {
      for (const [key] of late) this.store.orders.delete(key);
      this.store.changed();
    };
    const line = ([, { words }]) => h("p", {}, words);
    this.told.hidden = !late.length;
    this.told.dataset.k = "now";
    this.told.setAttribute("role", "alert");
    this.told.replaceChildren(
      icon("warn"),
      h("div.grow", {}, late.map(line)),
      h("button.mini", { type: "button", "aria-label": "Dismiss", onclick: close }, icon("x")),
    );
  }

  drawFilters(open, permissions) {
    const counts = new Map();
    for (const row of open) counts.set(row.agent, (counts.get(row.agent) ?? 0) + 1);
    const agents = counts.size > 1 && !this.saved ? [ALL, ...counts.keys()] : [];
    const made = JSON.stringify([agents, [...counts.values()], this.agent]);
    if (made !== this.filtersMade) {
      this.filtersMade = made;
      const had = this.chips.contains(document.activeElement);
      this.chips.replaceChildren(...agents.map((agent) => this.chip(agent, counts.get(agent) ?? open.length)));
      if (had) this.chips.querySelector("[aria-checked=true]")?.focus();
    }
    this.chips.hidden = !agents.length;
    this.rules.hidden = !permissions.length || this.saved;
    this.rules.textContent = plural(permissions.length, "standing permission");
    this.rules.setAttribute("aria-expanded", String(Boolean(this.rulesOpen)));
    this.filters.hidden = this.chips.hidden && this.rules.hidden;
  }

  chip(agent, count) {
    const on = agent === this.agent;
    const choose = () => this.choose(agent);
    const state = { role: "radio", "aria-checked": String(on), tabindex: on ? 0 : -1 };
    return h("button.pick", { type: "button", ...state, onclick: choose }, agent || "All agents", h("span.n", {}, count));
  }

  choose(agent) {
    this.agent = agent;
    this.draw();
  }

  toggleRules() {
    this.rulesOpen = !this.rulesOpen;
    this.draw();
  }

  drawPermissions(permissions) {
    this.permissions.hidden = !this.rulesOpen || this.rules.hidden;
    const orders = permissions.map(({ id }) => this.store.orders.get(`p:${id}`) ?? null);
    const made = JSON.stringify([permissions, orders, this.closed]);
    if (made === this.permissionsMade) return;
    this.permissionsMade = made;
    const had = this.permissions.contains(document.activeElement);
    this.permissions.replaceChildren(...permissions.map((each, at) => this.permission(each, orders[at])));
    if (had) (this.permissions.querySelector("button:not([disabled])") ?? this.title).focus();
  }

  permission({ id, tool, where, reach, args, by, at }, order) {
    const revoke = () => this.store.order("revoke", `p:${id}`, { permission: id });
    const values = args && Object.entries(args).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
    const disabled = this.closed || Boolean(order && !order.words);
    return h(
      "div.rule",
      {},
      h("span.what", {}, h("code.mono", {}, tool), values && h("code.mono.vals", {}, values.join("  "))),
      h("span.o", {}, `${where}: ${reach}`, order?.words && h("span.refusal", { role: "alert" }, ` ${order.words}`)),
      h("span.meta", {}, h("span.id", {}, id), ` ${by === "view" ? "in a view" : by === "api" ? "from Python" : `by ${by}`} ${clock(at)}`),
      h("button.btn.small", { type: "button", "aria-label": `Revoke ${id}, ${tool}`, disabled, onclick: revoke }, "Revoke"),
    );
  }

  /** The element of a card; drawn anew only when what it shows has changed. */
  cardOf(row) {
    const order = this.store.orders.get(row.key);
    const minutes = row.expires ? expiresIn(row.expires) : "";
    const seen = JSON.stringify([{ ...row, v: 0 }, order ?? null, this.store.link, minutes]);
    const old = this.drawn.get(row.key);
    if (old?.seen === seen) return old.element;
    const element = card(this, row, order);
    this.drawn.set(row.key, { element, seen });
    if (old?.element.contains(document.activeElement)) this.moved = [old.element, element];
    return element;
  }

  /** What was opened and typed in a card; it outlives the drawing of it. */
  form(key) {
    if (!this.forms.has(key)) this.forms.set(key, { open: null, reason: "", typed: {} });
    return this.forms.get(key);
  }

  forget() {
    for (const map of [this.forms, this.drawn])
      for (const key of map.keys()) if (this.store.rows.get(key)?.state !== "open") map.delete(key);
  }

  // ── Focus and keys ──

  cards() {
    return [...this.root.querySelectorAll(".card")];
  }

  /** One card is in the tab order, the one that was last in focus. */
  reach() {
    const cards = this.saved ? [] : this.cards();
    const now = cards.find((element) => element.contains(document.activeElement));
    const one = now ?? cards.find((element) => element === this.tabbed) ?? cards[0];
    for (const element of cards) element.tabIndex = element === one ? 0 : -1;
    this.tabbed = one;
  }

  /** Where the focus is: which card, which part of it; null outside of cards. */
  place() {
    const active = document.activeElement;
    const at = this.cards().findIndex((element) => element.contains(active));
    if (at < 0) return null;
    const { selectionStart, selectionEnd } = active;
    return { at, active, part: active.dataset.part, selection: [selectionStart, selectionEnd] };
  }

  /** Bring the focus back when its card was drawn anew or went away. */
  return({ at, active, part, selection }) {
    if (active.isConnected) return;
    const cards = this.cards();
    const same = this.moved?.[1]?.isConnected ? this.moved[1] : null;
    this.moved = null;
    if (!same) return (cards[Math.min(at, cards.length - 1)] ?? this.title).focus();
    const found = part && same.querySelector(`[data-part="${CSS.escape(part)}"]`);
    const goal = found && !found.disabled ? found : same;
    goal.focus({ preventScroll: true });
    if (goal === found && selection[0] !== undefined && selection[0] !== null) goal.setSelectionRange(...selection);
  }

  /** Say what a button means, and go on to the next card. */
  answer(row, op, more) {
    const cards = this.cards();
    const at = cards.findIndex((element) => element === this.drawn.get(row.key)?.element);
    if (!this.store.order(op, row.key, more)) return;
    if (op === "approve" || op === "deny") (cards[at + 1] ?? cards[at - 1])?.focus();
  }

  key(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.getAttribute("role") === "radio") return this.arrow(event);
    const inside = target.closest(".card");
    if (!inside || this.closed) return;
    const typing = target.matches("input, textarea");
    const part = (name) => inside.querySelector(`[data-part="${name}"]:not([disabled])`);
    const cards = this.cards();
    const step = (by) => cards[Math.max(0, Math.min(cards.length - 1, cards.indexOf(inside) + by))].focus();
    const acts = {
      j: () => step(1),
      k: () => step(-1),
      a: () => part("approve")?.click(),
      d: () => part("deny")?.click(),
      e: () => inside.querySelector(".arg input, .arg textarea")?.focus(),
    };
    if (key === "Escape") {
      event.preventDefault();
      part("back")?.click();
      inside.focus();
    } else if (!typing && key.toLowerCase() in acts) {
      event.preventDefault();
      acts[key.toLowerCase()]();
    }
  }

  arrow(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const chips = [...this.chips.children];
    const next = chips[(chips.indexOf(event.target) + step + chips.length) % chips.length];
    next.click();
  }
}

export default () => widgetOf(InboxWire, InboxView);
