// Windows on [0, length] × [0, top]: zooming keeps what is under the cursor, and nothing leaves the run.

export type Range = readonly [number, number];

/** `range` made `factor` times as long around `anchor`, kept within `limit`, never below `shortest`. */
export function zoomRange(range: Range, anchor: number, factor: number, limit: Range, shortest: number): Range {
  const whole = limit[1] - limit[0];
  const length = Math.min(Math.max((range[1] - range[0]) * factor, Math.min(shortest, whole)), whole);
  const share = (anchor - range[0]) / Math.max(range[1] - range[0], 1e-9);
  return fitRange([anchor - share * length, anchor + (1 - share) * length], limit);
}

/** Moved as little as possible so that it lies within `limit`; its length stays, if it fits. */
export function fitRange(range: Range, limit: Range): Range {
  const length = Math.min(range[1] - range[0], limit[1] - limit[0]);
  const low = Math.min(Math.max(range[0], limit[0]), limit[1] - length);
  return [low, low + length];
}

export function panRange(range: Range, by: number, limit: Range): Range {
  return fitRange([range[0] + by, range[1] + by], limit);
}

/** A window that shows `range` with `margin` × its length on either side. */
export function frameRange(range: Range, margin: number, limit: Range, shortest: number): Range {
  const length = Math.max(range[1] - range[0], shortest);
  const middle = (range[0] + range[1]) / 2;
  const half = length * (0.5 + margin);
  return fitRange([middle - half, middle + half], limit);
}

export function sameRange(a: Range | null, b: Range | null): boolean {
  return a === b || (a !== null && b !== null && a[0] === b[0] && a[1] === b[1]);
}
