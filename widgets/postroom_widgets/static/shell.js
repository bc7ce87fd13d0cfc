// What every view is on the page: one root that keeps its keys to itself, a banner about the link,
// and the focus and place it keeps when the page draws its output anew.

import { clock, h, icon } from "./kit.js";
import { Opened } from "./opened.js";

const CLOCK_MS = 1000;
const KEEP_FOCUS_MS = 300;
const SLOW_MS = 1000;

/** A view of a store. `again` is the command that shows it anew; subclasses `draw()`. */
export class Shell {
  constructor(store, again) {
    this.store = store;
    this.again = again;
    this.banner = h("div.banner");
    this.foot = h("footer.foot");
    this.root = h("section.pr");
    // Jupyter's one-letter commands must never fire from inside a view.
    this.root.addEventListener("keydown", (event) => {
      event.stopPropagation();
      // Nothing in here wanted it: it closes the view where that was opened from another.
      if (event.key === "Escape" && !event.defaultPrevented)
        this.root.dispatchEvent(new CustomEvent("postroom-leave", { bubbles: true }));
    });
    this.opened = new Opened(this);
    this.root.addEventListener("focusin", (event) =>
      Object.assign(this, { focused: event.target, leftAt: Infinity }),
    );
    this.root.addEventListener("focusout", () => (this.leftAt = Date.now()));
  }

  draw() {
    this.scheduled = false;
    this.stale = !this.root.isConnected; // drawn when it is on the page again
    if (this.stale) return;
    this.drawBanner();
    this.foot.hidden = this.store.link !== "saved";
    if (!this.foot.hidden) this.drawFoot();
    this.paint();
  }

  /** Draw what is between banner and foot. */
  paint() {}

  /** Bring scroll places back, when the view was moved on the page. */
  restore() {}

  /** Once a second, while something goes on. */
  tick() {}

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => this.draw());
  }

  /** What is told while many rows come in for longer than a moment; null else. */
  catchingUp() {
    const { catching } = this.store;
    if (!catching || Date.now() - catching.since <= SLOW_MS) return null;
    return `Catching up, ${catching.got.toLocaleString("en")} of ${catching.total.toLocaleString("en")}`;
  }

  drawBanner() {
    const { link, words } = this.store;
    const said = `${link} ${words}`;
    if (said === this.said) return;
    this.said = said;
    this.banner.hidden = !["busy", "gone", "over"].includes(link);
    this.banner.dataset.k = link === "busy" ? "now" : "bad";
    this.banner.setAttribute("role", link === "busy" ? "status" : "alert");
    const text = { busy: [this.busyWords], gone: this.goneWords(), over: [words] }[link];
    this.banner.replaceChildren(
      ...(text ? [icon(link === "busy" ? "clock" : "warn"), h("span", {}, text)] : []),
    );
  }

  get busyWords() {
    return "A cell is running. What you send now arrives when it ends or awaits.";
  }

  goneWords(kept = "") {
    return [
      "The kernel restarted, so this view is no longer live. Run ",
      h("code.mono", {}, this.again),
      ` again.${kept}`,
    ];
  }

  drawFoot() {
    const { head } = this.store;
    const at = head.at ? `Saved ${clock(head.at)}` : "Saved";
    this.foot.replaceChildren(
      `${at} without a kernel. Run `,
      h("code", {}, this.again),
      " to see it live.",
    );
  }

  /** Put the view into `el`; what it had in focus a moment ago gets the focus again. */
  move(el) {
    const had = Date.now() - this.leftAt < KEEP_FOCUS_MS ? this.focused : null;
    const area = had?.tagName === "TEXTAREA" && had;
    const selection = area && [area.selectionStart, area.selectionEnd];
    this.el = el;
    el.append(this.root, this.opened.root);
    onceOnPage(el, () => {
      this.draw();
      this.restore();
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

/** Hide what a saved notebook keeps of `view`, while the view itself is there; returns what undoes it. */
function hideKept(view) {
  const kept = `.postroom-kept[data-view="${view}"]`;
  const rule = h("style", {}, `${kept}, .jp-OutputArea-child:has(${kept}) { display: none; }`);
  document.head.append(rule);
  return () => rule.remove();
}

/** Show the store in `el` as a `View`; returns what undoes it. */
function mount(store, el, View) {
  // A front end that draws an output anew drops the old element without a word. Its view goes on
  // in the new one, so that a draft, the focus and the place in the feed survive.
  const view = [...store.views].find((other) => !other.root.isConnected) ?? new View(store);
  const { leave } = view;
  view.leave = store.subscribe(() => view.schedule(), el);
  leave?.();
  store.views.add(view);
  view.move(el);
  const ticking = setInterval(() => (store.active || store.head.asks > 0) && view.el === el && view.root.isConnected && view.tick(), CLOCK_MS);
  const seen = new ResizeObserver(() => {
    if (view.el === el && view.stale) view.draw();
    else if (el.isConnected && !el.firstChild) mount(store, el, View);
  });
  seen.observe(el);
  const showKept = hideKept(store.view);
  return () => {
    showKept();
    clearInterval(ticking);
    seen.disconnect();
    if (view.el !== el) return;
    view.leave();
    store.views.delete(view);
    view.root.remove();
    view.opened.end();
  };
}

/** The widget of one kind of view: what anywidget runs. */
export function widgetOf(Wire, View) {
  let store;
  const open = (model) => {
    store ??= Object.assign(new Wire(model), { views: new Set() });
    return store;
  };
  return {
    initialize({ model }) {
      open(model);
      return () => store.close();
    },
    render({ model, el }) {
      return mount(open(model), el, View);
    },
  };
}
