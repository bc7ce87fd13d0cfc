// What people typed and the kernel has not confirmed: the draft, and words on their way. They
// outlive a reload of the page in the browser's session storage, where it is allowed.

const FORGET_MS = 2000;

/** Session storage, or null in a front end that forbids it. */
function shelf() {
  try {
    return globalThis.sessionStorage ?? null;
  } catch {
    return null;
  }
}

function keysOf(store, prefix) {
  const keys = [];
  for (let i = 0; i < store.length; i++)
    if (store.key(i).startsWith(prefix)) keys.push(store.key(i));
  return keys;
}

/**
 * One view's unsent words. An item is { id, life, text, interrupt, reply, at, state, error, mail }:
 * `held` still here, `sent` on its way, `known` accepted as `mail`, `lost` here again because it
 * was refused or its kernel is gone. `life` names the kernel life it was written for.
 */
export class Outbox {
  constructor(prefix, view, life) {
    this.prefix = prefix;
    this.key = prefix + view;
    this.life = life;
    this.draft = { text: "", reply: null, error: "" };
    this.items = [];
    this.name = Math.random().toString(36).slice(2, 8);
    this.counter = 0;
    this.recall();
  }

  /** A fresh id for something said to the kernel; no other view's is equal. */
  id() {
    return `view-${this.name}-${this.counter++}`;
  }

  write(text) {
    this.draft = { ...this.draft, text, error: "" };
    this.remember();
  }

  replyTo(row) {
    const reply = row && { id: row.id, name: row.name, text: (row.text ?? "").slice(0, 120) };
    this.draft = { ...this.draft, reply };
    this.remember();
  }

  /** Turn the draft into an item and empty the box; null when there is nothing to say. */
  take(interrupt) {
    const { text, reply } = this.draft;
    if (!text.trim()) return null;
    const item = {
      id: this.id(),
      life: this.life,
      text: text.trim(),
      interrupt,
      reply,
      at: new Date().toISOString(),
      state: "held",
    };
    this.items.push(item);
    this.draft = { text: "", reply: null, error: "" };
    this.remember();
    return item;
  }

  find(id) {
    return this.items.find((item) => item.id === id);
  }

  discard(id) {
    this.items = this.items.filter((item) => item.id !== id);
    this.remember();
  }

  /** Take an item's words back into the box, below what is there. */
  edit(id) {
    const item = this.find(id);
    if (!item) return;
    const text = [this.draft.text, item.text].filter((part) => part.trim()).join("\n");
    this.draft = { text, reply: this.draft.reply ?? item.reply, error: item.error ?? "" };
    this.discard(id);
  }

  acknowledged(id, mail) {
    const item = this.find(id);
    if (item) Object.assign(item, { state: "known", knownAt: Date.now(), mail, error: "" });
    this.remember();
  }

  /** A refusal goes back into the box with its words, unless something new stands there. */
  refused(id, words) {
    const item = this.find(id);
    if (!item) return;
    Object.assign(item, { state: "lost", error: words });
    if (this.draft.text.trim()) this.remember();
    else this.edit(id);
  }

  /** Mail has arrived: its words are no longer ours to keep. It may also be too far up to be sent. */
  arrived(ids) {
    const late = Date.now() - FORGET_MS;
    this.items = this.items.filter(
      (item) => !item.mail || (!ids.has(item.mail) && item.knownAt > late),
    );
  }

  /** What the kernel of `life` should have got: to be said again under the same ids. */
  owed(life) {
    this.life = life;
    for (const item of this.items)
      if (item.life !== life && item.state !== "known") item.state = "lost";
    this.remember();
    return this.items.filter((item) => item.state === "held" || item.state === "sent");
  }

  recall() {
    const store = shelf();
    if (!store) return;
    try {
      for (const key of keysOf(store, this.prefix)) {
        const kept = JSON.parse(store.getItem(key));
        // Another view's words are its own, unless its kernel is gone and nobody holds them.
        if (key !== this.key && kept.life === this.life) continue;
        if (!this.draft.text)
          this.draft = { text: kept.text ?? "", reply: kept.reply ?? null, error: "" };
        this.items.push(...(kept.items ?? []));
        if (key !== this.key) store.removeItem(key);
      }
    } catch {
      return; // not ours to read
    }
    this.remember();
  }

  remember() {
    const { text, reply } = this.draft;
    const items = this.items.filter((item) => item.state !== "known");
    try {
      if (text || items.length)
        shelf()?.setItem(this.key, JSON.stringify({ life: this.life, text, reply, items }));
      else shelf()?.removeItem(this.key);
    } catch {
      // full, or forbidden: the words are still on the page
    }
  }
}
