// The lanes below the panes: steps, phases, marks, and the curves that have no pane.

import { effect } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { t } from '../i18n';
import { focusPool, input, jumpTo, kShortestTime, patch, pointerTime, pool, shownPools, timeWindow, togglePane, view, wholeTime } from '../state/store';
import { theme } from '../ui/theme';
import { kGutter, kMargin } from './chart';
import { lanes, lineData, partNames, plotWidth, seriesKeys } from './data';
import { hovered } from './hover';
import { type CounterLane, LaneCanvas, laneHit, laneRows, type Row, rowsHeight } from './lanes';
import { laneColours, lineLook } from './look';
import { frameRange } from './viewport';

let rowsOnScreen: Row[] = [];

export function LaneStrip({ frame }: { frame: RefObject<HTMLElement> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current;
    const outer = frame.current;
    if (!element || !outer) return undefined;
    const undo = [follow(element), attach(element, outer)];
    return () => undo.forEach((step) => step());
  }, []);
  return (
    <div class="lane-room">
      <canvas class="lanes" ref={canvas} />
    </div>
  );
}

// What no pane draws. All that will be asked for has its place from the start: the pictures above
// keep their height.
function curves(): CounterLane[] {
  const data = lineData.value;
  const drawn = (key: string): boolean => shownPools.value.some((shown) => lineLook(key, shown).over);
  return seriesKeys()
    .filter((key) => !drawn(key))
    .map((key) => ({
      label: lineLook(key).style.label,
      values: data?.series.find((series) => series.key === key)?.values ?? [],
      time: data?.time ?? ([0, 1] as const),
      pool: key.startsWith('allocated:') ? Number(key.split(':')[1]) : null,
    }));
}

function moreText(): string | null {
  const names = partNames();
  if (names.length === 0) return null;
  return view.value.parts ? `▾ ${t('timeline.lane.fewer')}` : `▸ ${t('timeline.lane.more', names.length, names.join(', '))}`;
}

function follow(canvas: HTMLCanvasElement): () => void {
  const lane = new LaneCanvas(canvas);
  return effect(() => {
    void theme.value;
    const from = input.value;
    const there = { phases: (from?.phases ?? 0) > 0, marks: (from?.marks ?? 0) + (from?.ooms ?? 0) > 0 };
    const labels = { steps: t('timeline.lane.steps'), phases: t('timeline.lane.phases'), marks: t('timeline.lane.marks'), more: moreText() };
    const rows = laneRows(there, curves(), labels);
    rowsOnScreen = rows;
    canvas.style.height = `${rowsHeight(rows)}px`;
    const width = plotWidth.value + kGutter + kMargin;
    if (plotWidth.value > 10) lane.draw(width, timeWindow.value, lanes.value, rows, laneColours(), getComputedStyle(document.body).fontFamily);
  });
}

// A click on a step, phase or mark shows it; on a curve, that pool in a pane of its own.
function attach(canvas: HTMLCanvasElement, outer: HTMLElement): () => void {
  const control = new AbortController();
  const find = (event: MouseEvent) => {
    const bounds = canvas.getBoundingClientRect();
    const [t0, t1] = timeWindow.value;
    const scale = (t1 - t0) / Math.max(plotWidth.value, 1);
    const at = t0 + (event.clientX - bounds.left - kGutter) * scale;
    const item = laneHit(lanes.value, rowsOnScreen, at, event.clientY - bounds.top, 5 * scale);
    return { at, item, inside: at >= t0 && at <= t1 };
  };
  canvas.addEventListener('click', (event) => {
    const { item } = find(event);
    if (item?.lane === 'more') patch({ parts: !view.peek().parts });
    else if (item?.pool !== undefined) {
      togglePane(item.pool);
      focusPool(item.pool);
    } else if (item && item.end > item.begin) {
      jumpTo(frameRange([item.begin, item.end], 0.15, wholeTime.value, kShortestTime), null);
    }
  }, { signal: control.signal });
  canvas.addEventListener('pointermove', (event) => {
    const { at, item, inside } = find(event);
    pointerTime.value = inside ? at : null;
    const bounds = outer.getBoundingClientRect();
    hovered.value = item && item.lane !== 'more'
      ? { pool: pool.value?.id ?? 0, x: event.clientX - bounds.left, y: event.clientY - bounds.top, time: at, bytes: 0, hit: null, floor: false, lane: item }
      : null;
  }, { signal: control.signal });
  canvas.addEventListener('pointerleave', () => {
    pointerTime.value = null;
    hovered.value = null;
  }, { signal: control.signal });
  return () => control.abort();
}
