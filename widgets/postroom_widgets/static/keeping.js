// Takes a diagram out of the page: as Mermaid text, and as an SVG that needs nothing else.

import { drawGround, drawHeads, drawRow, s, time } from "./drawing.js";
import { labelOf, source, target } from "./filing.js";

const LABEL = 120; // characters of a Mermaid label, which is never wrapped by itself
const PLAIN = new Set(" .,!?()'-_/+*@=→…");
const ARROWS = {
  reply: "-->>",
  answer: "-->>",
  control: "-->>",
  spawn: "-->",
  result: "-->>",
  refused: "-x",
  watched: "-->>",
};
const WORDS = { interrupt: "interrupt: ", answer: "answer: " };

/** `text` so that Mermaid shows it as it is, whatever stands in it. */
export function escaped(text) {
  const line = text.split(/\s+/).filter(Boolean).join(" ");
  const plain = [...line]
    .map((char) => (/[\p{L}\p{N}]/u.test(char) || PLAIN.has(char) ? char : `#${char.codePointAt(0)};`))
    .join("");
  // The word by itself ends a block in Mermaid.
  return plain.toLowerCase() === "end" ? `#${plain.codePointAt(0)};${plain.slice(1)}` : plain;
}

/** The same text as `room.sequence().mermaid` has for the same marks; `shown` are marks and bars. */
export function toMermaid(log, { marks, bars }) {
  const touched = new Set(marks.flatMap((mark) => [source(mark), target(mark)]));
  const lines = [{ id: "", name: "you" }, ...log.lines].filter(({ id }) => touched.has(id));
  const alias = new Map(lines.map(({ id }, i) => [id, `p${i}`]));
  const out = ["sequenceDiagram"];
  if (!lines.length) return [...out, "  participant p0 as you", "  Note over p0: No mail yet."].join("\n");
  for (const { id, name, agent } of lines) {
    const of = agent && agent !== name ? ` (${agent})` : "";
    const kind = id === "" ? "actor" : "participant";
    out.push(`  ${kind} ${alias.get(id)} as ${escaped((log.names.get(id) ?? name) + of)}`);
  }
  const open = new Map();
  const byCall = new Map(bars.map((bar) => [bar.call, bar]));
  const close = (n) => {
    const ended = [...open.values()].filter((bar) => n === null || (bar.ended && bar.ended < n));
    ended.sort((a, b) => (a.ended ?? 0) - (b.ended ?? 0) || (a.call < b.call ? -1 : 1));
    for (const bar of ended) {
      open.delete(bar.call);
      out.push(`  deactivate ${alias.get(bar.session)}`);
      if (!bar.returned && bar.state && bar.state !== "completed" && bar.state !== "running")
        out.push(`  Note over ${alias.get(bar.session)}: ${escaped(`${bar.tool} ${bar.state.replaceAll("_", " ")}`)}`);
    }
  };
  for (const mark of marks) {
    close(mark.n);
    const at = alias.get(source(mark));
    const words = (text) => escaped(text.length <= LABEL ? text : `${text.slice(0, LABEL - 1).trimEnd()}…`);
    if (mark.what === "call") {
      out.push(`  ${at}->>${at}: ${words(oneLine(mark.text) || labelOf(mark))}`);
      if (!byCall.has(mark.id)) continue;
      open.set(mark.id, byCall.get(mark.id));
      out.push(`  activate ${at}`);
    } else if (mark.what === "close" || mark.what === "failed") {
      out.push(`  Note over ${at}: ${words(labelOf(mark))}`);
    } else {
      const arrow = mark.unread ? "-)" : (ARROWS[mark.what] ?? "->>");
      out.push(`  ${at}${arrow}${alias.get(target(mark))}: ${words((WORDS[mark.what] ?? "") + labelOf(mark))}`);
    }
  }
  close(null);
  return out.join("\n");
}

const oneLine = (text) => (text ?? "").split(/\s+/).filter(Boolean).join(" ");

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "paint-order", "font-size", "font-weight", "font-family"];

/**
 * The whole diagram as SVG text, with the colours it has on this page written in.
 *
 * It is drawn in the page for a moment, out of sight, for only there the colours are known.
 */
export function toSvg(diagram) {
  const { layout, lines, log, ruler } = diagram;
  const heads = drawHeads(layout, log.names, lines, ruler, () => {});
  const top = Number(heads.getAttribute("height"));
  const rows = layout.rows.map((drawn, at) => {
    const before = layout.rows[at - 1];
    const told = time(drawn.mark, layout.gutter);
    const state = { time: before && time(before.mark, layout.gutter) === told ? "" : told };
    return drawRow(drawn, { layout, ruler, names: log.names, at, size: layout.rows.length, ...state });
  });
  const body = s(
    "g",
    { transform: `translate(0 ${top})` },
    drawGround(layout, 0, layout.height),
    rows,
  );
  const width = layout.width;
  const height = Math.ceil(layout.height + top);
  const svg = s(
    "svg.seq",
    { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    s("rect.paper", { width, height }),
    s("g", {}, [...heads.children]),
    s("line.lf", { x1: 0, x2: width, y1: top, y2: top }),
    body,
  );
  svg.setAttribute("style", "position:absolute;visibility:hidden");
  diagram.root.append(svg);
  try {
    for (const element of svg.querySelectorAll("*")) plainly(element);
  } finally {
    svg.remove();
  }
  svg.removeAttribute("style");
  svg.removeAttribute("class");
  return new XMLSerializer().serializeToString(svg);
}

/** Write into an element how it looks, and take away what only the page needs. */
function plainly(element) {
  const name = element.tagName;
  if (element.classList.contains("hit")) return element.remove();
  if (name !== "g" && name !== "title") {
    const style = getComputedStyle(element);
    for (const property of KEPT) {
      const value = style.getPropertyValue(property);
      const ofText = property.startsWith("font") || property === "paint-order";
      if (value && value !== "normal" && (name === "text" || !ofText))
        element.setAttribute(property, colour(value));
    }
  }
  for (const attribute of [...element.attributes])
    if (/^(class|role|tabindex|data-|aria-)/.test(attribute.name)) element.removeAttribute(attribute.name);
}

/** A colour as every program reads it: mixed ones are computed as `color(srgb r g b)`. */
export function colour(value) {
  const mixed = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.]+))?\)$/.exec(value);
  if (!mixed) return value;
  const [r, g, b] = mixed.slice(1, 4).map((part) => Math.round(255 * Number(part)));
  return mixed[4] ? `rgba(${r}, ${g}, ${b}, ${mixed[4]})` : `rgb(${r}, ${g}, ${b})`;
}

/** Hand a text to the page's user as a file. */
export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Put a text on the clipboard; false where the page may not. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand?.("copy") ?? false;
    area.remove();
    return done;
  }
}
