// Small things all views share. What people wrote reaches the page as text nodes only.

export const STATES = {
  pending: "pending",
  running: "running",
  deferred: "waiting for you",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  timed_out: "timed out",
  orphaned: "orphaned",
  denied: "denied",
};

const PATHS = {
  bolt: "M9 1.5 3.5 9H8l-1 5.5L12.5 7H8z",
  stop: "M4 4h8v8H4z",
  pause: "M5.5 3v10 M10.5 3v10",
  play: "M5 3l8 5-8 5z",
  x: "M4 4l8 8 M12 4l-8 8",
  check: "M3 8.5 6.5 12 13 4.5",
  reply: "M6.5 4 2.5 8l4 4 M2.5 8H10a3.5 3.5 0 0 1 3.5 3.5V13",
  send: "M8 13V3 M4 7l4-4 4 4",
  chev: "M6 4l4 4-4 4",
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11z M8 5v3l2 1.5",
  out: "M5 11 11 5 M6 5h5v5",
  warn: "M8 2.5 14 13H2z M8 6.5v3 M8 11.2v.2",
  shield: "M8 2l5 2v4c0 3-2.2 5-5 6c-2.8-1-5-3-5-6V4z",
  gauge: "M2.5 11.5a5.5 5.5 0 1 1 11 0 M8 11.5 10.8 7.5",
  bell: "M4 11.5V7.5a4 4 0 0 1 8 0v4z M2.5 11.5h11 M7 14h2",
  end: "M4 2.5v11 M4 3h8l-2 3 2 3H4",
  detach: "M3 8h3 M10 8h3 M7 5 9 11",
  mail: "M2.5 4h11v8h-11z M2.5 4.5 8 9l5.5-4.5",
  tool: "M3 5l3 3-3 3 M8 11.5h5",
  prev: "M4 3.5v9 M12 4v8L6 8z",
  next: "M12 3.5v9 M4 4v8l6-4z",
  save: "M8 2.5v7.5 M4.5 7 8 10.5 11.5 7 M3 13.5h10",
  copy: "M6 5.5h7v8H6z M10 5.5v-3H3v8h3",
  plus: "M3.5 8h9 M8 3.5v9",
  minus: "M3.5 8h9",
  gate: "M2.5 3v10 M13.5 3v10 M2.5 6h4.5 M9 10h4.5 M2.5 10h2 M11.5 6h2",
};
const ARGUMENT_LINE = 200;
const SVG = "http://www.w3.org/2000/svg";

/** A 16 px drawing; it says nothing to a screen reader, the word beside it does. */
export function icon(name, kind = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `i ${kind}`.trim());
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** An element: `h("p.mt.t", { title }, "text", child)`. Empty children and attributes are left out. */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return element;
}

/** A small button; `kind` are further classes of it. */
export function button(words, attributes, kind = "") {
  return h(`button.btn.small${kind}`, { type: "button", ...attributes }, words);
}

/** The time of day, here: `10:03:02`. */
export function clock(iso) {
  const at = iso ? new Date(iso) : null;
  if (!at || Number.isNaN(at.getTime())) return "";
  return [at.getHours(), at.getMinutes(), at.getSeconds()]
    .map((n) => String(n).padStart(2, "0"))
    .join(":");
}

/** The day and minute, here: `2026-03-02 10:03`. */
export function minute(iso) {
  const at = new Date(iso);
  const two = (n) => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** A duration as people write it: `0.8 s`, `12 s`, `1 m 52 s`, `2 h 5 m`. */
export function span(seconds) {
  if (!seconds || seconds < 0.05) return "";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes} m ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

/** Time that still runs: `0:41`, `1:02:07`. */
export function running(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (!parts[0]) parts.shift();
  return parts.map((n, i) => (i ? String(n).padStart(2, "0") : n)).join(":");
}

/** A number of tokens: `318`, `2.1k`, `1.3M`. */
export function count(n) {
  if (n < 1000) return String(n);
  return n < 999950 ? `${(n / 1000).toFixed(1)}k` : `${(n / 1e6).toFixed(1)}M`;
}

/** US dollars: `<$0.001`, `$0.017`, `$1.23`, `$1,234`; nothing for none, and where nobody knows. */
export function money(dollars) {
  if (!dollars || dollars < 0) return "";
  if (dollars < 0.001) return "<$0.001";
  if (dollars >= 999.995) return `$${dollars.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",")}`;
  return `$${dollars.toFixed(dollars >= 0.0995 ? 2 : dollars >= 0.00995 ? 3 : 4)}`;
}

export function plural(n, one, many = `${one}s`) {
  return `${n} ${n === 1 ? one : many}`;
}

/** Compare two places, number by number. */
export function byPlace(a, b) {
  return a.o[0] - b.o[0] || a.o[1] - b.o[1];
}

/** The parts that say something, with dots between. */
export function say(...parts) {
  return parts.filter(Boolean).join(" · ");
}

/** The arguments of a call on one line: `suite="fast"  workers=4`. */
export function argumentLine(args) {
  const line = Object.entries(args ?? {})
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join("  ");
  return line.length > ARGUMENT_LINE ? `${line.slice(0, ARGUMENT_LINE)}…` : line;
}

/** A link to another row of the same feed, by its key or its mail's id; text where nothing can be pressed. */
export function jump(ctx, target, words) {
  return ctx.closed
    ? h("span", {}, words)
    : h("button.link", { type: "button", onclick: () => ctx.jump(target) }, words);
}

/** A session or a person: the square is the kind, the word is the name. */
export function chip(tone, name, of) {
  return h("span.chip", { "data-k": tone }, h("span", {}, name, of && h("span.of", {}, ` ${of}`)));
}

/** Make `children` those of `parent`, in order. What is there already is not touched: it keeps focus. */
export function settle(parent, children) {
  const kept = new Set(children);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  let place = parent.firstElementChild;
  for (const child of children) {
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
}
