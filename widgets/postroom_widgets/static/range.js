// Which rows of a long feed are on the page: the last ones, or those around where somebody reads.

export const PAGE = 250; // rows at the end
export const STEP = 125; // rows by which the page moves up or down
const MOST = 375; // rows on the page, wherever it is

export class Range {
  constructor() {
    this.anchor = null; // key of the first row; null at the end, which is followed
    this.wanted = 0; // rows to show above it as soon as they are there
  }

  /** The rows that belong on the page: the first, and the one after the last. */
  of(rows) {
    const at = this.anchor === null ? -1 : rows.findIndex(({ key }) => key === this.anchor);
    if (at < 0) {
      this.anchor = null;
      return [Math.max(0, rows.length - PAGE - this.take(rows.length - PAGE)), rows.length];
    }
    const start = at - this.take(at);
    this.anchor = rows[start].key;
    return [start, Math.min(rows.length, start + MOST)];
  }

  take(above) {
    const rows = Math.max(0, Math.min(above, this.wanted));
    this.wanted -= rows;
    return rows;
  }

  /** Stay where `first` is the first row, whatever comes below. */
  hold(first) {
    this.anchor ??= first?.key ?? null;
  }

  /** Follow the end again. */
  follow() {
    this.anchor = null;
    this.wanted = 0;
  }

  down(rows) {
    const [start] = this.of(rows);
    this.anchor = rows[Math.min(rows.length - 1, start + STEP)]?.key ?? null;
  }

  /** Come to where `rows[at]` is on the page. */
  around(rows, at) {
    this.anchor = rows[Math.max(0, at - STEP)].key;
  }
}

/**
 * Grow from `pivot` to all of `start` to `stop`, downwards first, while `enough()` does not say
 * that it took long; returns what came to be.
 */
export function grown(pivot, start, stop, take, enough) {
  let [low, high] = [pivot, pivot];
  while (high < stop && !(high > pivot && enough())) take(high++);
  while (low > start && !enough()) take(--low);
  return [low, high];
}
