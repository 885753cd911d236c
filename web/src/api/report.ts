// A report carries its answers with it: what the server said to a list of questions, in the page
// itself. This stands in the server's place: it finds the recorded answer that fits a question, and
// does by itself what little it can (windows of lines, filters and sorting of recorded rows).

import { ApiError, type Parameters, type Transport } from './client';
import { compareRows, keeps } from './local_rows';
import type { Condition, Rows, Sites } from './types';
import { decodeLines, encodeLines, type Lines } from './wire';

export interface Recorded {
  name: string;
  parameters: Record<string, string>;
  json?: unknown;
  /** A binary answer. */
  base64?: string;
}

/** Which parameters make two questions different; the rest (windows, widths) only refine. */
const kIdentity: Record<string, readonly string[]> = {
  steps: ['input'],
  lanes: ['input'],
  graph: ['pool', 'order', 'colour'],
  legend: ['pool', 'colour'],
  sites: ['pool'],
  composition: ['pool', 'by', 'weight', 't', 'base'],
  compare: ['a', 'b', 'by'],
  block: ['pool', 'block'],
  hover: ['pool', 'block'],
  place: ['pool', 'block', 'order'],
  stack: ['input', 'stack'],
  source: ['input', 'file', 'line'],
  blocks: ['pool'],
  events: ['pool'],
  pool_map: ['pool'],
};

export class ReportTransport implements Transport {
  constructor(
    private readonly answers: readonly Recorded[],
    private readonly missing: () => string,
  ) {}

  json(name: string, parameters: Parameters): Promise<unknown> {
    return new Promise((resolve) => resolve(this.answer(name, parameters)));
  }

  binary(name: string, parameters: Parameters): Promise<ArrayBuffer> {
    return new Promise((resolve) => {
      if (name === 'lines') resolve(this.lines(parameters));
      else resolve(bytesOf(this.find(name, parameters).base64 ?? ''));
    });
  }

  address(): null {
    return null;
  }

  private answer(name: string, parameters: Parameters): unknown {
    if (name === 'blocks' || name === 'events') return this.rows(name, parameters);
    if (name === 'sites') return this.sites(parameters);
    if (name === 'index') return { offset: null };
    if (name === 'search') return { results: [] };
    if (name === 'locate') return { block: null, from: 0, to: 0, total: 0, summary: null };
    if (name === 'status') {
      return { generation: 1, state: 'ready', progress: 1, growing: false, error: null, diagnosis: 'ready' };
    }
    return this.find(name, parameters).json;
  }

  private find(name: string, parameters: Parameters, also: readonly string[] = []): Recorded {
    const keys = [...(kIdentity[name] ?? []), ...also];
    const found = this.answers.find(
      (answer) =>
        answer.name === name && keys.every((key) => textOf(parameters[key]) === (answer.parameters[key] ?? '')),
    );
    if (!found) throw new ApiError(404, this.missing());
    return found;
  }

  // The very question, if it was recorded (a verdict's blocks); else what the table's rows have.
  private rows(name: string, parameters: Parameters): Rows {
    let recorded: Recorded;
    let conditions: Condition[] = [];
    try {
      recorded = this.find(name, parameters, ['where']);
    } catch {
      recorded = this.find(name, { pool: parameters['pool'], where: '' }, ['where']);
      conditions = JSON.parse(textOf(parameters['where']) || '[]') as Condition[];
    }
    const answer = recorded.json as Rows;
    const names = answer.columns.map((column) => column.name);
    const rows = answer.rows.filter((row) => conditions.every((condition) => keeps(condition, row, names)));
    const sort = textOf(parameters['sort']);
    if (sort !== '') rows.sort((a, b) => compareRows(sort, a, b, names));
    const offset = Number(parameters['offset'] ?? 0);
    const size = names.indexOf('size');
    const sum = rows.reduce((total, row) => total + Number(row[size] ?? 0), 0);
    return { ...answer, total: rows.length, offset, rows: rows.slice(offset, offset + Number(parameters['limit'] ?? 100)), sum: { size: sum } };
  }

  private sites(parameters: Parameters): Sites {
    const answer = this.find('sites', parameters).json as Sites;
    const wanted = textOf(parameters['find']).toLowerCase();
    const rows = answer.rows.filter((row) => `${row.place} ${row.function} ${row.text ?? ''}`.toLowerCase().includes(wanted));
    const [column, order] = textOf(parameters['sort']).split(':');
    if (column) {
      const down = order === 'asc' ? 1 : -1;
      const value = (row: unknown): string | number => (row as Record<string, string | number | null>)[column] ?? -Infinity;
      rows.sort((a, b) => {
        const x = value(a);
        const y = value(b);
        return down * (typeof x === 'string' || typeof y === 'string' ? String(x).localeCompare(String(y)) : x - y);
      });
    }
    const offset = Number(parameters['offset'] ?? 0);
    return { ...answer, total: rows.length, rows: rows.slice(offset, offset + Number(parameters['limit'] ?? 200)) };
  }

  private lines(parameters: Parameters): ArrayBuffer {
    const width = Number(parameters['width']);
    const window: [number, number] = [Number(parameters['t0']), Number(parameters['t1'])];
    const series: Lines['series'] = [];
    for (const key of textOf(parameters['series']).split(',')) {
      const recorded = this.answers.find((answer) => answer.name === 'lines' && (answer.parameters['series'] ?? '').split(',').includes(key));
      const index = recorded?.parameters['series']?.split(',').indexOf(key) ?? -1;
      const lines = recorded ? decodeLines(bytesOf(recorded.base64 ?? '')) : null;
      const found = lines?.series[index];
      const whole: [number, number] = [Number(recorded?.parameters['t0']), Number(recorded?.parameters['t1'])];
      series.push(found ? resample(found, whole, window, width) : emptySeries(width));
    }
    return encodeLines({ width, series });
  }
}

type Series = Lines['series'][number];

function emptySeries(width: number): Series {
  const nothing = (): Float64Array => new Float64Array(width).fill(NaN);
  return { min: nothing(), max: nothing(), last: nothing() };
}

/** The recorded pixels that a pixel of the window covers, at least the one at its middle. */
export function resample(from: Series, whole: readonly [number, number], window: readonly [number, number], width: number): Series {
  const result = emptySeries(width);
  const count = from.max.length;
  const pixel = (t: number): number => ((t - whole[0]) / (whole[1] - whole[0])) * count;
  for (let i = 0; i < width; i += 1) {
    const left = pixel(window[0] + (i / width) * (window[1] - window[0]));
    const right = pixel(window[0] + ((i + 1) / width) * (window[1] - window[0]));
    const first = Math.floor(left);
    const last = Math.max(first, Math.ceil(right) - 1);
    for (let k = Math.max(first, 0); k <= Math.min(last, count - 1); k += 1) {
      const low = from.min[k] ?? NaN;
      const high = from.max[k] ?? NaN;
      if (Number.isNaN(high)) continue;
      result.min[i] = Number.isNaN(result.min[i]) ? low : Math.min(result.min[i] ?? low, low);
      result.max[i] = Number.isNaN(result.max[i]) ? high : Math.max(result.max[i] ?? high, high);
      result.last[i] = from.last[k] ?? NaN;
    }
  }
  return result;
}

function textOf(value: Parameters[string]): string {
  return value === null || value === undefined ? '' : String(value);
}

function bytesOf(base64: string): ArrayBuffer {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes.buffer;
}

/** The report's answers, where this page is a report. */
export function embeddedAnswers(): Recorded[] | null {
  const text = document.getElementById('msmemscope-report')?.textContent.trim() ?? '';
  return text === '' ? null : (JSON.parse(text) as { answers: Recorded[] }).answers;
}
