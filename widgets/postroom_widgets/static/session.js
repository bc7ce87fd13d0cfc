// The session view: header, banner, feed, send box. One store per model, so that two views of it
// agree and a view that is drawn anew loses nothing.

import { Composer } from "./composer.js";
import { Feed } from "./feed.js";
import { clock, count, h, icon, plural } from "./kit.js";
import { Store } from "./store.js";
import { Strip } from "./strip.js";

const CLOCK_MS = 1000;
const SLOW_MS = 1000;
const KEEP_FOCUS_MS = 300;

/** What a session is doing, in words; the same as in the saved view. */
export function statusWords({ status, turn, calls, asks, end, needs }) {
  if (needs) return needs;
  if (status === "running" && turn) return `running · turn ${turn}`;
  if (status === "waiting" && calls) return `waiting · ${plural(calls, "call")}`;
  if ((status === "waiting" || status === "idle") && asks)
    return `${status} · ${plural(asks, "call waits", "calls wait")} for you`;
  if (status === "idle" && end === "stopped") return "idle · stopped";
  if (status === "failed" && turn) return `failed · in turn ${turn}`;
  if (status === "paused") return "paused · mail is kept";
  if (status === "capped") return "capped · mail from you goes on";
  return status;
}

/** The shape and colour of the status dot. */
function dot({ status, calls, asks, end }, closed) {
  if (closed) return "stopped";
  if (status === "waiting") return calls ? "running still" : "waiting";
  if (status === "idle" && asks) return "waiting";
  if (status === "capped") return "paused";
  if (status === "closed" || (status === "idle" && end === "stopped")) return "stopped";
  return status;
}

/** What a session can be let to go on from. */
const RESTING = ["ready", "paused", "failed", "capped"];

class View {
  constructor(store) {
    this.store = store;
    const redraw = (change) => (id) => {
      change(id);
      store.changed();
    };
    this.feed = new Feed(store, {
      reply: (row) => this.reply(row),
      edit: redraw((id) => store.outbox.edit(id)),
      discard: redraw((id) => store.outbox.discard(id)),
      order: (op, key, more) => store.order(op, key, more),
    });
    this.strip = new Strip(this.feed);
    this.composer = new Composer(store);
    this.dot = h("span.st", { "aria-hidden": "true" });
    this.name = h("h2");
    this.status = h("span", { role: "status" });
    this.stats = h("div.stats");
    this.stop = h(
      "button.btn",
      { type: "button", onclick: () => store.order("stop") },
      icon("stop"),
      h("span.w", {}, "Stop"),
    );
    this.pause = h("button.btn", {
      type: "button",
      onclick: () => store.order(this.resumes ? "resume" : "pause"),
    });
    this.controls = h("div.ctrls", {}, this.pause, this.stop);
    this.head = h(
      "header.head",
      {},
      this.dot,
      h("div.who", {}, this.name, h("span.meta.clip", {}, this.status)),
      h("span.grow"),
      this.stats,
      this.controls,
    );
    this.banner = h("div.banner");
    this.foot = h("footer.foot");
    this.root = h(
      "section.pr",
      {},
      this.head,
      this.banner,
      this.feed.root,
      this.strip.root,
      this.composer.root,
      this.foot,
    );
    // Jupyter's one-letter commands must never fire from inside a view.
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
    this.root.addEventListener("focusin", (event) =>
      Object.assign(this, { focused: event.target, leftAt: Infinity }),
    );
    this.root.addEventListener("focusout", () => (this.leftAt = Date.now()));
  }

  reply(row) {
    this.store.outbox.replyTo(row);
    this.store.changed();
    this.composer.area.focus();
  }

  draw() {
    this.scheduled = false;
    if (!this.root.isConnected) {
      this.stale = true; // drawn when it is on the page again
      return;
    }
    this.stale = false;
    this.drawHead();
    this.drawBanner();
    const saved = this.store.link === "saved";
    this.composer.root.hidden = saved;
    this.foot.hidden = !saved;
    if (saved) this.drawFoot();
    else this.composer.draw();
    this.feed.draw();
    this.strip.draw();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => this.draw());
  }

  drawHead() {
    const { head, link, closed, catching } = this.store;
    const slow = catching && Date.now() - catching.since > SLOW_MS;
    const gone = link === "gone" || link === "over";
    this.root.setAttribute("aria-label", `session ${head.name}`);
    this.dot.className = `st ${dot(head, gone)}`;
    this.name.textContent = head.name;
    const words = slow
      ? `Catching up, ${catching.got} of ${catching.total.toLocaleString("en")}`
      : statusWords(head);
    const told = gone ? "gone" : link === "saved" ? `${head.status} · ${clock(head.at)}` : words;
    if (this.status.textContent !== told) this.status.textContent = told;
    const number = (n, word) => h("span", {}, h("b", {}, n), ` ${word}`);
    this.stats.replaceChildren(
      h("span.wide", {}, [...new Set([head.agent, head.model])].filter(Boolean).join(" · ")),
      ...(head.unread && !closed ? [number(head.unread, "unread")] : []),
      ...(head.calls && !closed ? [number(head.calls, head.calls === 1 ? "call" : "calls")] : []),
      ...(head.asks && !closed ? [number(head.asks, "for you")] : []),
      ...(head.tokens ? [number(count(head.tokens), "tokens")] : []),
    );
    const active = head.status === "running" || head.status === "waiting" || head.calls > 0;
    this.controls.hidden = link === "saved";
    const order = this.store.orders.get("");
    const asked = Boolean(order && !order.words);
    this.stop.disabled = closed || !active || asked;
    this.stop.setAttribute("aria-label", `Stop ${head.name}`);
    this.pause.disabled = closed || head.status === "closed" || asked;
    this.drawPause(RESTING.includes(head.status));
  }

  drawPause(resumes) {
    if (resumes === this.resumes) return;
    this.resumes = resumes;
    const word = resumes ? "Resume" : "Pause";
    this.pause.replaceChildren(icon(resumes ? "play" : "pause"), h("span.w", {}, word));
    this.pause.setAttribute("aria-label", `${word} ${this.store.head.name}`);
  }

  drawBanner() {
    const { link, head, words } = this.store;
    const said = `${link} ${words}`;
    if (said === this.said) return;
    this.said = said;
    this.banner.hidden = !["busy", "gone", "over"].includes(link);
    this.banner.dataset.k = link === "busy" ? "now" : "bad";
    this.banner.setAttribute("role", link === "busy" ? "status" : "alert");
    const again = h("code.mono", {}, `%watch ${head.name}`);
    const text = {
      busy: ["A cell is running. What you send now arrives when it ends or awaits."],
      gone: [
        "The kernel restarted, so this view is no longer live. Run ",
        again,
        " again. Your text is kept.",
      ],
      over: [words],
    }[link];
    this.banner.replaceChildren(
      ...(text ? [icon(link === "busy" ? "clock" : "warn"), h("span", {}, text)] : []),
    );
  }

  drawFoot() {
    const { head } = this.store;
    const at = head.at ? `Saved ${clock(head.at)}` : "Saved";
    this.foot.replaceChildren(
      `${at} without a kernel. Run `,
      h("code", {}, `%watch ${head.name}`),
      " to see it live.",
    );
  }

  tick() {
    if (!this.root.isConnected) return;
    this.feed.tick();
    this.strip.draw();
  }

  // ── Being moved on the page ──

  /** Put the view into `el`; what it had in focus a moment ago gets the focus again. */
  move(el) {
    const had = Date.now() - this.leftAt < KEEP_FOCUS_MS ? this.focused : null;
    const area = had === this.composer.area && had;
    const selection = area && [area.selectionStart, area.selectionEnd];
    this.el = el;
    el.append(this.root);
    onceOnPage(el, () => {
      this.draw();
      this.feed.restore();
      if (!had || document.activeElement !== document.body) return;
      had.focus({ preventScroll: true });
      if (selection) area.setSelectionRange(...selection);
    });
  }
}

/** Call `then` in the moment `el` is on the page, before anybody can press a key. */
function onceOnPage(el, then) {
  if (el.isConnected) return then();
  const watch = new MutationObserver(() => {
    if (!el.isConnected) return;
    watch.disconnect();
    then();
  });
  watch.observe(document, { childList: true, subtree: true });
}

/** Show the store in `el`; returns what undoes it. */
function mount(store, el) {
  // A front end that draws an output anew drops the old element without a word. Its view goes on
  // in the new one, so that a draft, the focus and the place in the feed survive.
  const view = [...store.views].find((other) => !other.root.isConnected) ?? new View(store);
  const { leave } = view;
  view.leave = store.subscribe(() => view.schedule(), el);
  leave?.();
  store.views.add(view);
  view.move(el);
  const ticking = setInterval(() => store.head.calls && view.el === el && view.tick(), CLOCK_MS);
  const seen = new ResizeObserver(() => {
    if (view.el === el && view.stale) view.draw();
    else if (el.isConnected && !el.firstChild) mount(store, el);
  });
  seen.observe(el);
  return () => {
    clearInterval(ticking);
    seen.disconnect();
    if (view.el !== el) return;
    view.leave();
    store.views.delete(view);
    view.root.remove();
  };
}

export default () => {
  let store;
  const open = (model) => {
    store ??= Object.assign(new Store(model), { views: new Set() });
    return store;
  };
  return {
    initialize({ model }) {
      open(model);
      return () => store.close();
    },
    render({ model, el }) {
      return mount(open(model), el);
    },
  };
};
