// What somebody wrote, as text: nothing in it becomes markup. Only code between fences is set apart,
// because code that loses its columns cannot be read.

import { h } from "./kit.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$/;

/** The parts of a text, `{ code, lang, text }`: prose, and code between fences, an open one too. */
export function proseParts(text) {
  const parts = [];
  let lines = [];
  let fence = null; // { mark, lang } inside code
  const flush = () => {
    const whole = fence ? lines.join("\n") : lines.join("\n").replace(/^\n+|\n+$/g, "");
    if (fence || whole) parts.push({ code: Boolean(fence), lang: fence?.lang ?? "", text: whole });
    lines = [];
  };
  if (!/^ {0,3}(```|~~~)/m.test(text)) return [{ code: false, lang: "", text }];
  for (const line of text.split("\n")) {
    const [, mark, lang] = FENCE.exec(line) ?? [];
    const ends = fence && mark && !lang && mark[0] === fence.mark[0] && mark.length >= fence.mark.length;
    if (!mark || (fence && !ends)) {
      lines.push(line);
      continue;
    }
    flush();
    fence = fence ? null : { mark, lang };
  }
  flush();
  return parts;
}

/** Where the last whole sentence or line of a text ends. */
function sentenceEnd(text) {
  let end = 0;
  for (const match of text.matchAll(/[.!?:]["”')]*\s|\n/g)) end = match.index + match[0].length;
  return end;
}

/** A text that may still grow: what is there stays in place, and only whole sentences are read out. */
export class Prose {
  constructor(kind = "") {
    this.root = h(`div.prose${kind}`);
    this.blocks = [];
    this.caret = h("span.caret", { "aria-hidden": "true" });
  }

  show(text, live = false) {
    const parts = proseParts(text);
    parts.forEach((part, i) => {
      if (this.blocks[i]?.code !== part.code) this.cut(i);
      this.blocks[i] ??= this.block(part);
      this.write(this.blocks[i], part, live && i === parts.length - 1);
    });
    this.cut(parts.length);
    if (live) this.blocks.at(-1)?.element.append(this.caret);
    else this.caret.remove();
  }

  cut(from) {
    for (const { element } of this.blocks.splice(from)) element.remove();
  }

  block({ code, lang }) {
    const [told, rest] = [h("span"), h("span")];
    const element = h(code ? "pre.code" : "p.t", { "data-lang": lang || null }, told, rest);
    this.root.append(element);
    return { code, element, told, rest };
  }

  write({ told, rest }, { text }, grows) {
    if (!text.startsWith(told.textContent)) told.replaceChildren();
    const from = told.textContent.length;
    const end = grows ? sentenceEnd(text) : text.length;
    if (end > from) told.append(text.slice(from, end));
    rest.textContent = text.slice(Math.max(end, from));
    if (grows) rest.setAttribute("aria-hidden", "true");
    else rest.removeAttribute("aria-hidden");
  }
}
