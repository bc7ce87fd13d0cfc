// The forms of a call that waits for a person: yes, its arguments edited in place, no with a reason.
// They ask no view for anything but what is in `ask`, so every view that shows such a call has them.

import { argumentLine, button, h } from "./kit.js";

export const WHY_NOT = "Why not? The agent reads this.";
const NOT_JSON = 'Not JSON. Text needs quotes: "…"';
const LONG = 60; // characters of a value from which it gets several lines

/**
 * What was typed over the arguments `asked`: { edits, wrong }, both by name. An edit is the text
 * itself: numbers that this language would round are read where they are whole.
 */
export function readEdits(asked, typed) {
  const edits = {};
  const wrong = new Set();
  for (const [name, text] of Object.entries(typed)) {
    try {
      const value = JSON.parse(text);
      if (JSON.stringify(value) !== JSON.stringify(asked[name])) edits[name] = text;
    } catch {
      wrong.add(name);
    }
  }
  return { edits, wrong };
}

/**
 * The way to answer a call, in the state its person left it.
 *
 * `ask` has `words` (why it waits), `tool`, `args`, `disabled`, `open` (null, or what is open:
 * { form: "deny", reason } or { form: "edit", typed }), and what to do: `turn(open, selector)`
 * opens or closes a form and puts the focus there, `approve(edits)` and `deny(reason)` answer.
 */
export function asking(ask) {
  if (ask.open?.form === "deny") return denial(ask);
  return ask.open?.form === "edit" ? edition(ask) : question(ask);
}

function question(ask) {
  const what = `${ask.tool} ${argumentLine(ask.args)}`.trim(); // two of one tool differ in nothing else
  const named = (word) => ({ "aria-label": `${word} ${what}`, disabled: ask.disabled });
  const deny = () => ask.turn({ form: "deny", reason: "" }, "input");
  const edit = () => ask.turn({ form: "edit", typed: {} }, ".arg input, .arg textarea");
  return h(
    "div.ask",
    {},
    h("span.grow", {}, ask.words),
    h(
      "span.row",
      {},
      button("Approve", { ...named("Approve"), onclick: () => ask.approve({}) }, ".solid"),
      button("Deny…", { ...named("Deny"), onclick: deny }, ".no"),
      Object.keys(ask.args ?? {}).length > 0 &&
        button("Edit arguments", { ...named("Edit arguments of"), onclick: edit }, ".edit"),
    ),
  );
}

function denial(ask) {
  const input = h("input", {
    "aria-label": "reason",
    placeholder: WHY_NOT,
    value: ask.open.reason,
    disabled: ask.disabled,
  });
  const back = () => ask.turn(null, ".no");
  input.addEventListener("input", () => (ask.open.reason = input.value));
  return form(
    back,
    () => ask.deny(input.value.trim()),
    input,
    h(
      "button.btn.small.tone",
      { type: "submit", "data-k": "bad", disabled: ask.disabled },
      `Deny ${ask.tool}`,
    ),
    button("Back", { onclick: back }),
  );
}

function edition(ask) {
  const { typed } = ask.open;
  const yes = h("button.btn.small.solid", { type: "submit" });
  const back = () => ask.turn(null, ".edit");
  const lines = Object.entries(ask.args).map(([name, value]) =>
    argument(name, value, typed, () => look()),
  );
  const look = () => {
    const { edits, wrong } = readEdits(ask.args, typed);
    const edited = Object.keys(edits).length > 0;
    yes.textContent = edited ? "Approve as edited" : "Approve";
    yes.disabled = ask.disabled || wrong.size > 0;
    for (const line of lines) line.update(line.name in edits, wrong.has(line.name));
  };
  look();
  return form(
    back,
    () => yes.disabled || ask.approve(readEdits(ask.args, typed).edits),
    h("div.args-form", {}, lines),
    h("span.grow", {}, ask.words),
    h("span.row", {}, yes, button("Back", { onclick: back })),
  );
}

/** One argument: its name, its value as JSON, and what was asked for once it differs. */
export function argument(name, value, typed, changed) {
  const asked = JSON.stringify(value) ?? "null";
  const field = h(asked.length > LONG ? "textarea" : "input", {
    "aria-label": name,
    spellcheck: "false",
    rows: asked.length > LONG ? Math.min(6, Math.ceil(asked.length / LONG)) : null,
  });
  field.value = typed[name] ?? asked;
  field.addEventListener("input", () => {
    typed[name] = field.value;
    changed();
  });
  const restore = () => {
    field.value = asked;
    delete typed[name];
    changed();
    field.focus();
  };
  const wrong = h("span.refusal", { role: "alert" });
  const was = h(
    "span.was.meta",
    {},
    h("span.clip", {}, `asked for ${asked}`),
    h("button.mini", { type: "button", "aria-label": `Restore ${name}`, onclick: restore }, "Restore"),
  );
  const element = h("div.arg", {}, h("code.mono", { "aria-hidden": "true" }, name), field, was, wrong);
  element.name = name;
  element.update = (edited, broken) => {
    element.classList.toggle("edited", edited || broken);
    was.hidden = !edited && !broken;
    field.setAttribute("aria-invalid", String(broken));
    const words = broken ? NOT_JSON : "";
    if (wrong.textContent !== words) wrong.textContent = words;
    wrong.hidden = !broken;
  };
  return element;
}

/** A form that Enter sends and Escape leaves. */
function form(back, send, ...parts) {
  const element = h("form.ask", {}, parts);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    back();
  });
  return element;
}
