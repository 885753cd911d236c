// Which rows a scrolled table shows. Browsers cut elements that are some 17 million pixels high, so a
// long table's scroll bar is scaled: the bar then stands for the rows, not for their pixels.

export const kMostPixels = 8_000_000;

export interface RowWindow {
  /** The row at the top edge; a fraction is a row partly scrolled away. */
  top: number;
  /** Rows that fit the viewport. */
  fit: number;
}

export function scrollHeight(total: number, rowHeight: number): number {
  return Math.min(total * rowHeight, kMostPixels);
}

export function isScaled(total: number, rowHeight: number): boolean {
  return total * rowHeight > kMostPixels;
}

/** The row at the top edge for a scroll bar at `scrollTop`. */
export function rowAtScroll(scrollTop: number, total: number, rowHeight: number, viewport: number): number {
  if (!isScaled(total, rowHeight)) return scrollTop / rowHeight;
  const travel = kMostPixels - viewport;
  return (Math.min(Math.max(scrollTop / travel, 0), 1)) * lastTop(total, rowHeight, viewport);
}

/** Where the scroll bar stands for `top` to be the row at the top edge. */
export function scrollAtRow(top: number, total: number, rowHeight: number, viewport: number): number {
  if (!isScaled(total, rowHeight)) return top * rowHeight;
  const last = lastTop(total, rowHeight, viewport);
  return last <= 0 ? 0 : (top / last) * (kMostPixels - viewport);
}

/** The largest `top`: the last row then ends at the lower edge. */
export function lastTop(total: number, rowHeight: number, viewport: number): number {
  return Math.max(0, total - viewport / rowHeight);
}

/** Pages of `size` rows that a window needs. */
export function pagesOf(window: RowWindow, total: number, size: number): number[] {
  const first = Math.floor(Math.max(window.top, 0) / size);
  const last = Math.floor(Math.max(0, Math.min(window.top + window.fit, total - 1)) / size);
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_unused, i) => first + i);
}
