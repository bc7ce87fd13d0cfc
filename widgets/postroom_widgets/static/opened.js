// Sessions that were opened from a view: each has a live view of its own, below, in the same output.

import { chip, h, icon } from "./kit.js";

const LOOKS = 20; // for a model that is on its way from the kernel
const LOOK_MS = 100;

/** The attributes of what opens a session, and closes it again. */
export function opens(ctx, session, name) {
  const onclick = ({ currentTarget }) => ctx.opened.toggle(session, name, currentTarget);
  const expanded = String(ctx.opened.has(session));
  return { type: "button", "data-opens": session, "aria-expanded": expanded, title: `Open ${name}`, onclick };
}

/** The chip of a session; where something can be pressed, it opens the session. */
export function sessionChip(ctx, session, name, of) {
  const still = chip("agent", name, of);
  if (ctx.closed || !session || !ctx.opened) return still;
  return h("button.chip.opens", { "data-k": "agent", ...opens(ctx, session, name) }, ...still.childNodes);
}

/** The way to a session where no view can be opened in place. */
function command(name) {
  const words = `%watch ${name}`;
  const copy = h("button.mini", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(words);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Select it and copy";
    }
  });
  return ["Run ", h("code.mono", {}, words), " in a cell.", copy];
}

/** The model `id`, which the kernel has just made. */
async function modelOf(manager, id) {
  for (let look = 0; look < LOOKS; look += 1) {
    const model = await Promise.resolve(manager.get_model(id)).catch(() => null);
    if (model) return model;
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
  throw new Error(`no model ${id}`);
}

export class Opened {
  constructor(shell) {
    this.shell = shell;
    this.places = new Map(); // session -> what stands below for it
    this.root = h("div.pr-opened");
  }

  has(session) {
    return this.places.has(session);
  }

  /** Open a session, or close it again; `button` is what was pressed. */
  toggle(session, name, button) {
    if (this.has(session)) this.shut(session);
    else this.show(session, name, button);
  }

  show(session, name, button) {
    if (this.has(session)) return;
    const about = `opened from ${this.shell.root.getAttribute("aria-label")}`;
    const close = { type: "button", "aria-label": `Close ${name}`, onclick: () => this.shut(session) };
    const place = {
      name,
      button,
      words: h("span.words", { role: "status" }, `Opening ${name} …`),
      close: h("button.mini", close, icon("x"), "Close"),
      body: h("div"),
    };
    const bar = h("div.pr.opening", {}, chip("agent", name), h("span.meta.clip.about", {}, about), place.words, place.close);
    place.root = h("section", { "aria-label": `${name}, ${about}` }, bar, place.body);
    place.root.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.shut(session);
    });
    place.root.addEventListener("postroom-leave", (event) => {
      event.stopPropagation();
      this.shut(session);
    });
    this.places.set(session, place);
    this.root.append(place.root);
    this.mark(session);
    place.close.focus({ preventScroll: true });
    place.root.scrollIntoView?.({ block: "nearest" });
    this.shell.store.request("open", { session }, (answer) => {
      if (!answer?.view) return this.failed(place, answer?.words);
      this.embed(session, place, answer.view).catch(() => this.failed(place));
    });
  }

  async embed(session, place, id) {
    const manager = this.shell.store.model.widget_manager;
    const view = await manager.create_view(await modelOf(manager, id));
    if (this.places.get(session) !== place) return view.remove();
    place.view = view;
    place.words.replaceChildren();
    place.body.append(view.el);
    if (place.root.contains(document.activeElement)) place.root.scrollIntoView?.({ block: "nearest" });
  }

  /** Say why it cannot be opened, or how else to see it. */
  failed(place, words) {
    place.words.setAttribute("role", "alert");
    place.words.replaceChildren(...(words ? [words] : command(place.name)));
  }

  shut(session) {
    const place = this.places.get(session);
    if (!place) return;
    const had = place.root.contains(document.activeElement);
    this.places.delete(session);
    place.view?.remove();
    place.root.remove();
    const openers = this.mark(session);
    if (had) (place.button?.isConnected ? place.button : openers[0])?.focus();
  }

  end() {
    for (const session of [...this.places.keys()]) this.shut(session);
    this.root.remove();
  }

  /** Let everything that opens a session say whether it is open; returns it. */
  mark(session) {
    const openers = [...this.shell.root.querySelectorAll("[data-opens]")];
    const its = openers.filter(({ dataset }) => dataset.opens === session);
    for (const button of its) button.setAttribute("aria-expanded", String(this.has(session)));
    return its;
  }
}
