// A room's rows put in order: sessions as a tree, what happened in the order of the journal. Pure.

import { byPlace } from "./kit.js";

/** What the filters tell apart: id, word, tone, and the kinds of marks that belong to it. */
export const GROUPS = [
  ["you", "you", "user", []],
  ["agents", "sessions", "agent", ["mail", "reply", "answer"]],
  ["interrupt", "interrupts", "now", ["interrupt"]],
  ["calls", "calls", "tool", ["call", "result"]],
  ["asks", "asks you", "now", ["approval"]],
  ["refused", "refused, failed", "bad", ["refused", "failed"]],
  ["orders", "orders, events", "sys", ["control", "timer", "system", "watched"]],
  ["life", "spawned, closed", "sys", ["spawn", "close"]],
];
const GROUP = new Map(GROUPS.flatMap(([id, , , kinds]) => kinds.map((kind) => [kind, id])));

/** Kinds that are a letter of somebody to somebody. */
export const LETTERS = new Set(["mail", "reply", "interrupt"]);

export function groupOf(mark) {
  if (mark.tone === "user" && mark.what !== "interrupt" && LETTERS.has(mark.what)) return "you";
  return GROUP.get(mark.what) ?? "orders";
}

/** The ids of the lifelines a mark starts and ends at; the owner's is "". */
export const source = (mark) => mark.from ?? "";
export const target = (mark) => mark.to ?? "";

/**
 * The rows of a switchboard as a log: `tree` is every session with its depth, depth first; `marks`,
 * `bars` and `runs` stand in the order of the journal; `names` tells sessions of one name apart.
 */
export function file(rows, earlier = 0) {
  const log = { lines: [], marks: [], bars: [], runs: [], earlier };
  const piles = { line: log.lines, mark: log.marks, bar: log.bars, run: log.runs };
  for (const row of rows) piles[row.kind]?.push(row);
  for (const pile of Object.values(piles)) pile.sort(byPlace);
  log.tree = treeOf(log.lines);
  log.names = namesOf(log.lines);
  log.mail = new Map();
  log.answers = new Map();
  for (const mark of log.marks) {
    mark.t ??= Date.parse(mark.at) / 1000; // once: a row stays the same object until it changes
    if (mark.id && !log.mail.has(mark.id)) log.mail.set(mark.id, mark);
    if (mark.re) log.answers.set(mark.re, mark);
  }
  return log;
}

function treeOf(lines) {
  const known = new Set(lines.map((line) => line.id));
  const below = new Map();
  for (const line of lines) {
    const parent = known.has(line.parent) ? line.parent : "";
    if (below.has(parent)) below.get(parent).push(line);
    else below.set(parent, [line]);
  }
  const found = [];
  const walk = (parent, depth) => {
    for (const line of below.get(parent) ?? []) {
      found.push({ line, depth });
      walk(line.id, depth + 1);
    }
  };
  walk("", 0);
  return found;
}

function namesOf(lines) {
  const times = new Map();
  for (const { name } of lines) times.set(name, (times.get(name) ?? 0) + 1);
  const shown = lines.map(({ id, name }) => [id, times.get(name) > 1 ? `${name} (${id})` : name]);
  return new Map([["", "you"], ...shown]);
}

/** Who tells whom: `lead → rev`, or one name. */
export function who(mark, names) {
  const [from, to] = [names.get(source(mark)) ?? "?", names.get(target(mark)) ?? "?"];
  return source(mark) === target(mark) ? from : `${from} → ${to}`;
}

export const NO_WORDS = "(no words)";

export function labelOf(mark) {
  return mark.label || NO_WORDS;
}

/** All that was said; the label where there is no more. */
export function textOf(mark) {
  return mark.text || labelOf(mark);
}

/** What is to be known of a mark besides its words; the same words as in the saved view. */
export function factsOf(mark) {
  const plain = ["mail", "spawn", "close", "failed"].includes(mark.what);
  return [
    !plain && mark.what,
    mark.id && mark.what !== "spawn" && mark.what !== "close" && mark.id,
    mark.re && `re ${mark.re}`,
    mark.expects && "expects reply",
    mark.lowered && "lowered to normal",
    mark.hops && `${mark.hops} ${mark.hops === 1 ? "hop" : "hops"}`,
    mark.unread && "not read yet",
  ].filter(Boolean);
}
