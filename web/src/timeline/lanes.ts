// What lies under the time axis: steps, phases, marks, out-of-memory, gaps and counters, one lane each,
// drawn on one canvas that shares the chart's time scale.

import type { Lanes } from '../api/types';
import { formatBytes } from '../format/bytes';
import { shorten } from '../format/path';
import type { Range } from './viewport';
import { kGutter, kMargin } from './chart';

export const kLaneHeight = 20;
const kCounterHeight = 34;

export interface CounterLane {
  label: string;
  values: (number | null)[];
  time: Range;
  /** A curve of another pool: a click goes there. */
  pool: number | null;
}

export interface LaneColours {
  text: string;
  faint: string;
  even: string;
  odd: string;
  phases: Record<string, string>;
  mark: string;
  oom: string;
  line: string;
  grid: string;
  ground: string;
}

export interface LaneLabels {
  steps: string;
  phases: string;
  marks: string;
  /** What a click would show or hide; null: nothing. */
  more: string | null;
}

/** Something in a lane, where the pointer can find it. */
export interface LaneItem {
  lane: 'steps' | 'phases' | 'marks' | 'oom' | 'gap' | 'counter' | 'more';
  begin: number;
  end: number;
  text: string;
  k?: number;
  pool?: number;
}

export interface Row {
  kind: 'steps' | 'phases' | 'marks' | 'counter' | 'more';
  label: string;
  top: number;
  height: number;
  counter?: CounterLane;
}

/** What the input has: its lanes are there in every window, so that nothing jumps while it moves. */
export interface LanesThere {
  phases: boolean;
  marks: boolean;
}

export function laneRows(there: LanesThere, counters: readonly CounterLane[], labels: LaneLabels): Row[] {
  const rows: Row[] = [];
  let top = 0;
  const add = (kind: Row['kind'], label: string, height: number, counter?: CounterLane): void => {
    rows.push({ kind, label, top, height, ...(counter ? { counter } : {}) });
    top += height;
  };
  add('steps', labels.steps, kLaneHeight);
  if (there.phases) add('phases', labels.phases, kLaneHeight);
  if (there.marks) add('marks', labels.marks, kLaneHeight);
  for (const counter of counters) add('counter', counter.label, kCounterHeight, counter);
  if (labels.more !== null) add('more', labels.more, kLaneHeight);
  return rows;
}

export function rowsHeight(rows: readonly Row[]): number {
  const last = rows[rows.length - 1];
  return last ? last.top + last.height + 2 : 0;
}

export function stepText(step: { k: number; last_k: number }): string {
  return step.k === step.last_k ? String(step.k) : `${step.k}–${step.last_k}`;
}

export class LaneCanvas {
  private readonly context: CanvasRenderingContext2D;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext('2d');
    if (!context) throw new Error('no 2D canvas in this browser');
    this.context = context;
  }

  draw(width: number, time: Range, lanes: Lanes | null, rows: readonly Row[], colours: LaneColours, font: string): void {
    const ratio = globalThis.devicePixelRatio;
    const height = rowsHeight(rows);
    const { canvas, context } = this;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = `11px ${font}`;
    context.textBaseline = 'middle';
    const right = width - kMargin;
    const scale = (right - kGutter) / (time[1] - time[0]);
    const x = (t: number): number => kGutter + (t - time[0]) * scale;
    for (const row of rows) {
      context.fillStyle = colours.faint;
      if (row.kind === 'more') {
        context.textAlign = 'left';
        context.fillText(row.label, kGutter + 4, row.top + row.height / 2, right - kGutter - 8);
        continue;
      }
      context.textAlign = 'right';
      context.fillText(shorten(row.label, 13), kGutter - 8, row.top + row.height / 2, kGutter - 12);
      context.save();
      context.beginPath();
      context.rect(kGutter, row.top, right - kGutter, row.height);
      context.clip();
      if (row.kind === 'steps' && lanes) this.drawSteps(row, lanes, x, colours);
      if (row.kind === 'phases' && lanes) this.drawPhases(row, lanes, x, colours);
      if (row.kind === 'marks' && lanes) this.drawMarks(row, lanes, x, colours);
      if (row.counter) this.drawCounter(row, row.counter, x, colours);
      context.restore();
    }
    if (lanes) this.drawGaps(lanes, x, height, right, colours);
  }

  private box(left: number, right: number, row: Row, fill: string, text: string, ink: string): void {
    const { context } = this;
    const from = Math.max(left, kGutter);
    const width = Math.max(right - left - 1, 0.75);
    context.fillStyle = fill;
    context.fillRect(left, row.top + 2, width, row.height - 4);
    const room = Math.min(right, this.canvas.clientWidth - kMargin) - from - 8;
    if (text !== '' && room > 6 && context.measureText(text).width <= room) {
      context.fillStyle = ink;
      context.textAlign = 'center';
      context.fillText(text, from + (room + 8) / 2, row.top + row.height / 2 + 0.5);
    }
  }

  private drawSteps(row: Row, lanes: Lanes, x: (t: number) => number, colours: LaneColours): void {
    for (const step of lanes.steps) {
      const fill = step.k % 2 === 0 ? colours.even : colours.odd;
      this.box(x(step.begin), x(step.end), row, fill, stepText(step), colours.text);
    }
  }

  private drawPhases(row: Row, lanes: Lanes, x: (t: number) => number, colours: LaneColours): void {
    for (const phase of lanes.phases) {
      const fill = colours.phases[phase.phase] ?? colours.even;
      const text = phase.count > 1 ? '' : (phase.module ?? phase.phase);
      this.box(x(phase.begin), x(phase.end), row, fill, text, colours.text);
    }
  }

  private drawMarks(row: Row, lanes: Lanes, x: (t: number) => number, colours: LaneColours): void {
    const { context } = this;
    for (const mark of lanes.marks) {
      if (mark.end !== null) this.box(x(mark.begin), x(mark.end), row, colours.odd, mark.text, colours.text);
      else {
        context.fillStyle = colours.mark;
        context.fillRect(x(mark.begin) - 0.5, row.top + 2, 1.5, row.height - 4);
      }
    }
    for (const oom of lanes.ooms) {
      const at = x(oom.time);
      context.fillStyle = colours.oom;
      context.beginPath();
      context.moveTo(at, row.top + 3);
      context.lineTo(at + 6, row.top + row.height - 3);
      context.lineTo(at - 6, row.top + row.height - 3);
      context.fill();
    }
  }

  private drawCounter(row: Row, counter: CounterLane, x: (t: number) => number, colours: LaneColours): void {
    const { context } = this;
    const values = counter.values.filter((value): value is number => value !== null);
    const top = Math.max(...values, 1);
    const step = (counter.time[1] - counter.time[0]) / Math.max(counter.values.length, 1);
    const bottom = row.top + row.height - 2;
    context.strokeStyle = colours.line;
    context.lineWidth = 1.25;
    context.beginPath();
    let open = false;
    counter.values.forEach((value, index) => {
      if (value === null) {
        open = false;
        return;
      }
      const px = x(counter.time[0] + (index + 0.5) * step);
      const py = bottom - (value / (top * 1.1)) * (row.height - 4);
      if (open) context.lineTo(px, py);
      else context.moveTo(px, py);
      open = true;
    });
    context.stroke();
    context.strokeStyle = colours.grid;
    context.lineWidth = 1;
    context.strokeRect(0, bottom + 0.5, this.canvas.clientWidth, 0);
    if (values.length === 0) return;
    const text = formatBytes(Math.max(...values));
    context.fillStyle = colours.ground;
    context.globalAlpha = 0.8;
    context.fillRect(kGutter + 2, row.top + 1, context.measureText(text).width + 5, 14);
    context.globalAlpha = 1;
    context.fillStyle = colours.faint;
    context.textAlign = 'left';
    context.fillText(text, kGutter + 4, row.top + 8);
  }

  private drawGaps(lanes: Lanes, x: (t: number) => number, height: number, right: number, colours: LaneColours): void {
    const { context } = this;
    context.save();
    context.globalAlpha = 0.18;
    context.fillStyle = colours.oom;
    for (const gap of lanes.gaps) {
      const left = Math.max(x(gap.begin), kGutter);
      const width = Math.max(Math.min(x(gap.end), right) - left, 1);
      if (left < right) context.fillRect(left, 0, width, height);
    }
    context.restore();
  }
}

/** What lies at `t` in the lane at height `y`. */
export function laneHit(
  lanes: Lanes | null, rows: readonly Row[], t: number, y: number, tolerance: number,
): LaneItem | null {
  const row = rows.find((candidate) => y >= candidate.top && y < candidate.top + candidate.height);
  if (!row) return null;
  if (row.counter) {
    const { pool, label } = row.counter;
    return pool === null ? null : { lane: 'counter', begin: t, end: t, text: label, pool };
  }
  if (row.kind === 'more') return { lane: 'more', begin: t, end: t, text: row.label };
  if (!lanes) return null;
  if (row.kind === 'steps') {
    const step = lanes.steps.find((candidate) => t >= candidate.begin && t < candidate.end);
    return step ? { lane: 'steps', begin: step.begin, end: step.end, text: stepText(step), k: step.k } : null;
  }
  if (row.kind === 'phases') {
    const phase = lanes.phases.find((candidate) => t >= candidate.begin && t < candidate.end);
    const text = phase ? [phase.phase, phase.module].filter(Boolean).join(' · ') : '';
    return phase ? { lane: 'phases', begin: phase.begin, end: phase.end, text } : null;
  }
  if (row.kind === 'marks') {
    const oom = lanes.ooms.find((candidate) => Math.abs(candidate.time - t) <= tolerance);
    if (oom) return { lane: 'oom', begin: oom.time, end: oom.time, text: formatBytes(oom.size) };
    const mark = lanes.marks.find(
      (candidate) => t >= candidate.begin - tolerance && t < (candidate.end ?? candidate.begin + tolerance),
    );
    return mark ? { lane: 'marks', begin: mark.begin, end: mark.end ?? mark.begin, text: mark.text } : null;
  }
  return null;
}
