// Pointer and wheel over the chart → changes of the window. Knows pixels and ranges, no drawing.

import { panRange, type Range, zoomRange } from './viewport';

export interface GestureTarget {
  /** Plotting area in CSS pixels relative to the element. */
  area(): { left: number; top: number; width: number; height: number };
  time(): Range;
  bytes(): Range;
  limits(): { time: Range; bytes: Range; shortestTime: number; shortestBytes: number };
  move(time: Range, bytes: Range): void;
  /** Called once before a gesture changes the window. */
  begin(): void;
  hover(t: number | null, bytes: number, x: number, y: number): void;
  click(t: number, bytes: number, event: PointerEvent): void;
  doubleClick(t: number, shift: boolean): void;
  /** The box being drawn, in CSS pixels; null when it is over. */
  box(rectangle: { left: number; top: number; width: number; height: number } | null): void;
  boxByDefault(): boolean;
}

const kClickSlop = 4;
const kThinBox = 14;

export function timeAt(target: GestureTarget, x: number): number {
  const { left, width } = target.area();
  const [t0, t1] = target.time();
  return t0 + ((x - left) / width) * (t1 - t0);
}

export function bytesAt(target: GestureTarget, y: number): number {
  const { top, height } = target.area();
  const [m0, m1] = target.bytes();
  return m1 - ((y - top) / height) * (m1 - m0);
}

/** What a box stands for: a thin one means the one direction it is long in. */
export function boxRanges(
  target: GestureTarget, from: readonly [number, number], to: readonly [number, number],
): { time: Range; bytes: Range } {
  const wide = Math.abs(to[0] - from[0]) >= kThinBox;
  const high = Math.abs(to[1] - from[1]) >= kThinBox;
  const times = [timeAt(target, from[0]), timeAt(target, to[0])].sort((a, b) => a - b) as [number, number];
  const sizes = [bytesAt(target, from[1]), bytesAt(target, to[1])].sort((a, b) => a - b) as [number, number];
  return { time: wide ? times : target.time(), bytes: high ? sizes : target.bytes() };
}

/** Attaches to `element`; returns what undoes it. */
export function attachGestures(element: HTMLElement, target: GestureTarget): () => void {
  const control = new AbortController();
  const options = { signal: control.signal };
  let start: { x: number; y: number; time: Range; bytes: Range; boxing: boolean } | null = null;
  let moved = false;
  let space = false;
  let wheelAt = -Infinity;

  const local = (event: MouseEvent): [number, number] => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const within = (x: number, y: number): boolean => {
    const area = target.area();
    return x >= area.left && x <= area.left + area.width && y >= area.top && y <= area.top + area.height;
  };

  element.addEventListener(
    'wheel',
    (event) => {
      const [x, y] = local(event);
      event.preventDefault();
      if (event.timeStamp - wheelAt > 500) target.begin();
      wheelAt = event.timeStamp;
      const limits = target.limits();
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) && !event.shiftKey;
      if (sideways) {
        const [t0, t1] = target.time();
        target.move(panRange([t0, t1], (event.deltaX / target.area().width) * (t1 - t0), limits.time), target.bytes());
        return;
      }
      const delta = event.deltaY !== 0 ? event.deltaY : event.deltaX;
      const factor = Math.exp(Math.min(Math.max(delta, -240), 240) / 400);
      const inTime = !event.shiftKey || event.ctrlKey;
      const inBytes = event.shiftKey || event.ctrlKey;
      target.move(
        inTime ? zoomRange(target.time(), timeAt(target, x), factor, limits.time, limits.shortestTime) : target.time(),
        inBytes ? zoomRange(target.bytes(), bytesAt(target, y), factor, limits.bytes, limits.shortestBytes) : target.bytes(),
      );
    },
    { ...options, passive: false },
  );

  element.addEventListener(
    'pointerdown',
    (event) => {
      const [x, y] = local(event);
      if (event.button > 1 || !within(x, y)) return;
      element.setPointerCapture(event.pointerId);
      const pan = event.button === 1 || space;
      start = {
        x, y, time: target.time(), bytes: target.bytes(),
        boxing: !pan && (event.shiftKey !== target.boxByDefault()),
      };
      moved = false;
      if (event.button === 1) event.preventDefault();
    },
    options,
  );

  element.addEventListener(
    'pointermove',
    (event) => {
      const [x, y] = local(event);
      if (!start) {
        if (within(x, y)) target.hover(timeAt(target, x), bytesAt(target, y), x, y);
        else target.hover(null, 0, x, y);
        return;
      }
      if (!moved && Math.hypot(x - start.x, y - start.y) < kClickSlop) return;
      if (!moved) {
        moved = true;
        target.hover(null, 0, x, y);
        if (!start.boxing) target.begin();
      }
      if (start.boxing) {
        target.box(rectangle(target, start, x, y));
      } else {
        const { width, height } = target.area();
        const limits = target.limits();
        target.move(
          panRange(start.time, (-(x - start.x) / width) * (start.time[1] - start.time[0]), limits.time),
          panRange(start.bytes, ((y - start.y) / height) * (start.bytes[1] - start.bytes[0]), limits.bytes),
        );
      }
    },
    options,
  );

  const finish = (event: PointerEvent): void => {
    const [x, y] = local(event);
    const from = start;
    start = null;
    target.box(null);
    if (!from) return;
    if (!moved) {
      target.click(timeAt(target, x), bytesAt(target, y), event);
      return;
    }
    if (from.boxing) {
      const ranges = boxRanges(target, [from.x, from.y], [x, y]);
      const limits = target.limits();
      target.begin();
      target.move(
        zoomRange(ranges.time, ranges.time[0], 1, limits.time, limits.shortestTime),
        zoomRange(ranges.bytes, ranges.bytes[0], 1, limits.bytes, limits.shortestBytes),
      );
    }
  };
  element.addEventListener('pointerup', finish, options);
  element.addEventListener(
    'pointercancel',
    () => {
      start = null;
      target.box(null);
    },
    options,
  );
  element.addEventListener('pointerleave', (event) => target.hover(null, 0, event.offsetX, event.offsetY), options);
  element.addEventListener(
    'dblclick',
    (event) => {
      const [x, y] = local(event);
      if (within(x, y)) target.doubleClick(timeAt(target, x), event.shiftKey);
    },
    options,
  );
  window.addEventListener(
    'keydown',
    (event) => {
      if (event.code === 'Space' && document.activeElement === element) {
        space = true;
        event.preventDefault();
      }
    },
    options,
  );
  window.addEventListener('keyup', (event) => (space = event.code === 'Space' ? false : space), options);
  return () => control.abort();
}

function rectangle(
  target: GestureTarget, from: { x: number; y: number }, x: number, y: number,
): { left: number; top: number; width: number; height: number } {
  const area = target.area();
  const wide = Math.abs(x - from.x) >= kThinBox;
  const high = Math.abs(y - from.y) >= kThinBox;
  const clampX = Math.min(Math.max(x, area.left), area.left + area.width);
  const clampY = Math.min(Math.max(y, area.top), area.top + area.height);
  return {
    left: wide ? Math.min(from.x, clampX) : area.left,
    top: high ? Math.min(from.y, clampY) : area.top,
    width: wide ? Math.abs(clampX - from.x) : area.width,
    height: high ? Math.abs(clampY - from.y) : area.height,
  };
}
