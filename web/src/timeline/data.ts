// What the timeline asks for beside the block graph: lines, lanes, legend; which sites are accused.

import { effect, signal } from '@preact/signals';

import { ask, askBinary, isAbort } from '../api/client';
import type { Lanes, Legend, Sites } from '../api/types';
import { decodeLines } from '../api/wire';
import { input, pool, session, timeWindow, view } from '../state/store';
import type { Range } from './viewport';

export interface LineData {
  time: Range;
  x: number[];
  series: { key: string; values: (number | null)[]; low: (number | null)[] }[];
}

export const legend = signal<Legend | null>(null);
export const lanes = signal<Lanes | null>(null);
export const lineData = signal<LineData | null>(null);
/** Sites that a verdict accuses: site id → the verdict's index. */
export const accusedSites = signal<ReadonlyMap<number, number>>(new Map());
/** Pixels of the plotting area; what is asked for depends on it. */
export const plotWidth = signal(0);

/** The series of the current pool, allocated first, then what else is known. */
export function seriesKeys(): string[] {
  const here = pool.value;
  const from = input.value;
  if (!here || !from) return [];
  const keys = [`allocated:${here.id}`];
  if (here.reserved) keys.push(`reserved:${here.id}`);
  // The other pools of the process: their curves lie below, on the same time axis.
  for (const other of session.value?.pools ?? []) {
    if (other.input === here.input && other.id !== here.id && keys.length < 8) keys.push(`allocated:${other.id}`);
  }
  from.counters.forEach((counter, index) => {
    const mine = counter.device === null || counter.device === here.device;
    if (mine && keys.length < 16) keys.push(`counter:${from.id}:${index}`);
  });
  return keys;
}

/** Runs `work` anew whenever a signal it reads changes; its requests are given up then. */
function asking(work: (abort: AbortSignal) => Promise<void> | undefined): void {
  effect(() => {
    const control = new AbortController();
    work(control.signal)?.catch((error: unknown) => {
      if (!isAbort(error)) console.warn(error);
    });
    return () => control.abort();
  });
}

/** A moment after the window came to rest: the same questions are not asked at every frame of a drag. */
const restingWindow = signal<{ time: Range; width: number } | null>(null);

function followWindow(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const next = { time: timeWindow.value, width: plotWidth.value };
    clearTimeout(timer);
    timer = setTimeout(() => (restingWindow.value = next), restingWindow.peek() ? 40 : 0);
  });
}

export function followTimeline(): void {
  followWindow();
  asking((abort) => {
    const here = pool.value?.id;
    const generation = session.value?.generation;
    const colour = view.value.colour;
    if (here === undefined || generation === undefined) return undefined;
    return ask<Legend>('legend', { pool: here, colour }, abort).then((answer) => {
      legend.value = answer;
    });
  });
  asking((abort) => {
    const here = pool.value?.id;
    const diagnosis = session.value?.diagnosis;
    if (here === undefined || !diagnosis) return undefined;
    return ask<Sites>('sites', { pool: here, sort: 'bytes_per_step:desc', limit: 100 }, abort).then((answer) => {
      accusedSites.value = new Map(
        answer.rows.filter((row) => row.verdict !== null).map((row) => [row.site, row.verdict ?? 0]),
      );
    });
  });
  asking((abort) => {
    const from = input.value?.id;
    const window = restingWindow.value;
    const generation = session.value?.generation;
    if (from === undefined || generation === undefined || !window || window.width < 10) return undefined;
    const [t0, t1] = wholeNumbers(window.time);
    return ask<Lanes>('lanes', { input: from, t0, t1, width: Math.min(Math.floor(window.width), 8192) }, abort).then((answer) => {
      lanes.value = answer;
    });
  });
  asking(async (abort) => {
    const keys = seriesKeys();
    const window = restingWindow.value;
    const generation = session.value?.generation;
    if (keys.length === 0 || generation === undefined || !window || window.width < 10) return;
    const width = Math.min(Math.floor(window.width), 8192);
    const [begin, end] = wholeNumbers(window.time);
    const buffer = await askBinary('lines', { series: keys.join(','), t0: begin, t1: end, width }, abort);
    const answer = decodeLines(buffer);
    const plain = (array: Float64Array): (number | null)[] =>
      Array.from(array, (value) => (Number.isFinite(value) ? value : null));
    lineData.value = {
      time: [begin, end],
      x: Array.from({ length: width }, (_unused, i) => begin + ((i + 0.5) / width) * (end - begin)),
      series: answer.series.map((series, i) => ({
        key: keys[i] ?? '',
        values: plain(series.max),
        low: plain(series.min),
      })),
    };
  });
}

function wholeNumbers(range: Range): Range {
  const begin = Math.floor(range[0]);
  return [begin, Math.max(Math.ceil(range[1]), begin + 1)];
}
