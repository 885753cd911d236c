// A report carries its answers with it: what the server said to a list of questions, in the page
// itself. This stands in the server's place: it finds the recorded answer that fits a question, and
// does by itself what little it can: windows of lines, classes of a picture, filters and sorting of
// recorded rows, a block out of its row and its stack.

import { ApiError, type Parameters, type Transport } from './client';
import type { Frame } from './diagnosis';
import { compareRows, keeps } from './local_rows';
import type { Block, Cell, Condition, Place, Rows, Session, Sites, Source } from './types';
import { decodeGraph, decodeLines, encodeGraph, encodeLines, type Lines, onlyClasses } from './wire';

export interface Recorded {
  name: string;
  parameters: Record<string, string>;
  json?: unknown;
  /** A binary answer; packed: compressed as RFC 1950 says. */
  base64?: string;
  packed?: string;
}

/** What the report says of itself. */
export interface ReportFacts {
  left_out: { what: string; kept: number; all: number }[];
  redacted: string[];
}

export interface Report {
  facts: ReportFacts;
  answers: Recorded[];
  /** Stacks as numbers of frames: each frame is there once. */
  frames: Frame[];
  stacks: { input: number; stack: number; frames: number[] }[];
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
  private readonly unpacked = new Map<Recorded, Promise<ArrayBuffer>>();
  private readonly rowOfBlock = new Map<string, Map<number, Cell[]>>();

  constructor(
    private readonly report: Report,
    private readonly missing: () => string,
  ) {}

  json(name: string, parameters: Parameters): Promise<unknown> {
    return new Promise((resolve) => resolve(this.answer(name, parameters)));
  }

  async binary(name: string, parameters: Parameters): Promise<ArrayBuffer> {
    if (name === 'lines') return this.lines(parameters);
    const answer = await this.bytes(this.find(name, parameters));
    const classes = textOf(parameters['classes']);
    if (name !== 'graph' || classes === '') return answer.slice(0);
    return encodeGraph(onlyClasses(decodeGraph(answer), new Set(classes.split(',').map(Number))));
  }

  address(): null {
    return null;
  }

  forget(): void {
    // Nothing is kept but what the report carries.
  }

  private answer(name: string, parameters: Parameters): unknown {
    if (name === 'blocks' || name === 'events') return this.rows(name, parameters);
    if (name === 'sites') return this.sites(parameters);
    if (name === 'block' || name === 'hover') return this.block(parameters);
    if (name === 'place') return this.place(parameters);
    if (name === 'stack') return { frames: this.stack(Number(parameters['input']), Number(parameters['stack'])) ?? [] };
    if (name === 'source') return this.source(parameters);
    if (name === 'index') return { offset: null };
    if (name === 'search') return { results: [] };
    if (name === 'locate') return { block: null, from: 0, to: 0, total: 0, summary: null };
    if (name === 'status') {
      return { generation: 1, state: 'ready', progress: 1, growing: false, error: null, diagnosis: 'ready', names: 'ready' };
    }
    return this.find(name, parameters).json;
  }

  private look(name: string, parameters: Parameters, also: readonly string[] = []): Recorded | undefined {
    const keys = [...(kIdentity[name] ?? []), ...also];
    return this.report.answers.find(
      (answer) =>
        answer.name === name && keys.every((key) => textOf(parameters[key]) === (answer.parameters[key] ?? '')),
    );
  }

  private find(name: string, parameters: Parameters, also: readonly string[] = []): Recorded {
    const found = this.look(name, parameters, also);
    if (!found) throw new ApiError(404, this.missing());
    return found;
  }

  private bytes(recorded: Recorded): Promise<ArrayBuffer> {
    const known = this.unpacked.get(recorded);
    if (known) return known;
    const answer = recorded.packed === undefined ? Promise.resolve(bytesOf(recorded.base64 ?? '')) : inflate(bytesOf(recorded.packed));
    this.unpacked.set(recorded, answer);
    return answer;
  }

  // --- blocks

  private rows(name: string, parameters: Parameters): Rows {
    const answer = this.find(name, { pool: parameters['pool'], where: '' }, ['where']).json as Rows;
    const conditions = JSON.parse(textOf(parameters['where']) || '[]') as Condition[];
    const names = answer.columns.map((column) => column.name);
    const tests = conditions.map((condition) => this.test(condition, parameters['pool'], names));
    const rows = answer.rows.filter((row) => tests.every((test) => test(row)));
    const sort = textOf(parameters['sort']);
    if (sort !== '') rows.sort((a, b) => compareRows(sort, a, b, names));
    const offset = Number(parameters['offset'] ?? 0);
    const size = names.indexOf('size');
    const sum = rows.reduce((total, row) => total + Number(row[size] ?? 0), 0);
    return { ...answer, total: rows.length, offset, rows: rows.slice(offset, offset + Number(parameters['limit'] ?? 100)), sum: { size: sum } };
  }

  private test(condition: Condition, pool: Parameters[string], names: readonly string[]): (row: readonly Cell[]) => boolean {
    const block = names.indexOf('block');
    if (condition.op === 'verdict') {
      const accused = this.look('blocks', { pool, where: JSON.stringify([condition]) }, ['where'])?.json as { blocks: number[] } | undefined;
      const blocks = new Set(accused?.blocks);
      return (row) => blocks.has(Number(row[block]));
    }
    if (condition.op === 'stack_has') {
      const input = this.inputOf(textOf(pool));
      const wanted = String(condition.value).toLowerCase();
      const stack = names.indexOf('stack_id');
      return (row) =>
        this.stack(input, Number(row[stack]))?.some((frame) => `${frame.function}\n${frame.file ?? ''}`.toLowerCase().includes(wanted)) ?? false;
    }
    return (row) => keeps(condition, row, names);
  }

  private inputOf(pool: string): number {
    const open = this.look('session', {})?.json as Session | undefined;
    return open?.pools.find((candidate) => String(candidate.id) === pool)?.input ?? 0;
  }

  private stack(input: number, stack: number): Frame[] | null {
    const known = this.report.stacks.find((candidate) => candidate.input === input && candidate.stack === stack);
    if (!known) return null;
    return known.frames.flatMap((index) => this.report.frames[index] ?? []);
  }

  private cells(pool: string, block: number): ((name: string) => Cell) | null {
    const table = this.look('blocks', { pool, where: '' }, ['where'])?.json as Rows | undefined;
    if (!table) return null;
    const names = table.columns.map((column) => column.name);
    let rows = this.rowOfBlock.get(pool);
    if (!rows) {
      const id = names.indexOf('block');
      rows = new Map(table.rows.map((row) => [Number(row[id]), row]));
      this.rowOfBlock.set(pool, rows);
    }
    const row = rows.get(block);
    return row ? (name) => row[names.indexOf(name)] ?? null : null;
  }

  private block(parameters: Parameters): Block {
    const pool = textOf(parameters['pool']);
    const recorded = this.look('block', parameters)?.json as Block | undefined;
    const block = recorded ?? this.blockOfRow(pool, Number(parameters['block']));
    const stack = (recorded?.stack) ?? this.stack(this.inputOf(pool), block.stack_id) ?? [];
    const user = stack.findIndex((frame) => frame.user);
    return { ...block, stack, user_frame: user < 0 ? null : user };
  }

  // As much of a block as its row tells.
  private blockOfRow(pool: string, id: number): Block {
    const cell = this.cells(pool, id);
    if (!cell) throw new ApiError(404, this.missing());
    const number = (name: string): number | null => {
      const value = cell(name);
      return typeof value === 'number' ? value : null;
    };
    const text = (name: string): string | null => {
      const value = cell(name);
      return value === null ? null : String(value);
    };
    const siteId = number('site_id') ?? 0;
    const site = (this.look('sites', { pool })?.json as Sites | undefined)?.rows.find((row) => row.site === siteId);
    const begin = number('begin') ?? 0;
    const end = number('end');
    const thread = text('thread');
    return {
      block: id,
      address: text('address') ?? '',
      size: number('size') ?? 0,
      owner: text('owner'),
      site: siteId === 0 ? null : { id: siteId, place: text('site') ?? '', function: text('function') ?? '', text: site?.text ?? null },
      begin,
      end,
      lifetime: number('lifetime'),
      step: number('step'),
      end_step: number('end_step'),
      thread,
      preexisting: false,
      fate_unknown: cell('state') === 'unknown',
      verdict: end === null ? (site?.verdict ?? null) : null,
      stack: [],
      user_frame: null,
      stack_id: number('stack_id') ?? 0,
      free_thread: null,
      allocated_before: null,
      event: 0,
      free_event: null,
      events: [
        { kind: 'alloc', time: begin, thread, text: null },
        ...(end === null ? [] : [{ kind: 'free', time: end, thread: null, text: null }]),
      ],
      accesses: null,
      neighbours: { t: begin, below: [], above: [] },
      holders: [],
      same_site: { live_blocks: site?.live_blocks ?? 0, live_bytes: site?.live_bytes ?? 0, blocks: site?.allocs ?? 0 },
    };
  }

  // Where it lies in the stack is known of the few that were asked for; of others the whole height stands.
  private place(parameters: Parameters): Place {
    const recorded = this.look('place', parameters)?.json as Place | undefined;
    if (recorded) return recorded;
    const { begin, end } = this.block(parameters);
    const pools = (this.find('session', {}).json as Session).pools;
    const peak = pools.find((candidate) => String(candidate.id) === textOf(parameters['pool']))?.peak.bytes ?? 1;
    return { begin, end, t: begin, from: 0, to: peak };
  }

  private source(parameters: Parameters): Source {
    const source = this.find('source', parameters).json as Source;
    const around = Number(parameters['around'] ?? 30);
    const skip = Math.max(source.line - around - source.first_line, 0);
    const last = (source.end_line ?? source.line) + around;
    return { ...source, first_line: source.first_line + skip, lines: source.lines.slice(skip, last - source.first_line + 1) };
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

  private async lines(parameters: Parameters): Promise<ArrayBuffer> {
    const width = Number(parameters['width']);
    const window: [number, number] = [Number(parameters['t0']), Number(parameters['t1'])];
    const series: Lines['series'] = [];
    for (const key of textOf(parameters['series']).split(',')) {
      const recorded = this.report.answers.find((answer) => answer.name === 'lines' && (answer.parameters['series'] ?? '').split(',').includes(key));
      const index = recorded?.parameters['series']?.split(',').indexOf(key) ?? -1;
      const lines = recorded ? decodeLines(await this.bytes(recorded)) : null;
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

/** What zlib's compress() made. */
function inflate(packed: ArrayBuffer): Promise<ArrayBuffer> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

/** The report, where this page is one. */
export function embeddedReport(): Report | null {
  const text = document.getElementById('msmemscope-report')?.textContent.trim() ?? '';
  if (text === '') return null;
  const report = JSON.parse(text) as Partial<Report>;
  return {
    facts: { left_out: report.facts?.left_out ?? [], redacted: report.facts?.redacted ?? [] },
    answers: report.answers ?? [],
    frames: report.frames ?? [],
    stacks: report.stacks ?? [],
  };
}
