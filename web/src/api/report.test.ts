import { describe, expect, it } from 'vitest';

import { compareRows, keeps } from './local_rows';
import { type Recorded, ReportTransport, resample } from './report';
import type { Frame } from './diagnosis';
import type { Block, Cell, Rows, Source } from './types';
import { decodeGraph, decodeLines, encodeGraph, encodeLines, type Graph, onlyClasses } from './wire';

const kNames = ['block', 'address', 'size', 'begin', 'end', 'site', 'stack_id'];
const frameOf = (name: string, file: string, user: boolean): Frame => ({
  file, line: 1, end_line: 1, function: name, module: null, kind: 'python', user, inferred: false, text: null,
});
const kRows: Cell[][] = [
  [1, '0x7f0000000010', 4096, 10, 20, 'a.py:1', 4],
  [2, '0xffffffffffffff00', 65536, 15, null, 'b.py:2'],
  [3, '0x7f00', 512, 30, null, 'a.py:9'],
];

describe('rows of a report', () => {
  const which = (condition: Parameters<typeof keeps>[0]): number[] =>
    kRows.filter((row) => keeps(condition, row, kNames)).map((row) => Number(row[0]));
  it('are filtered as the server would', () => {
    expect(which({ column: 'size', op: '>', value: 1000 })).toEqual([1, 2]);
    expect(which({ column: 'size', op: 'in', value: [512, 4096] })).toEqual([1, 3]);
    expect(which({ column: 'site', op: 'contains', value: 'A.PY' })).toEqual([1, 3]);
    expect(which({ column: 'end', op: 'is', value: null })).toEqual([2, 3]);
    expect(which({ column: 'address', op: '>', value: '0x7f0000000010' })).toEqual([2]); // all 64 bits count
    expect(which({ op: 'alive_at', value: 15 })).toEqual([1, 2]);
    expect(which({ op: 'alive_at', value: 20 })).toEqual([2]); // freed at 20
    expect(which({ op: 'born_in', value: [10, 30] })).toEqual([1, 2]);
    expect(which({ op: 'unfreed_in', value: [10, 30] })).toEqual([2]);
  });
  it('are sorted by several columns, what is unknown last', () => {
    const order = (sort: string): number[] => [...kRows].sort((a, b) => compareRows(sort, a, b, kNames)).map((row) => Number(row[0]));
    expect(order('size:desc')).toEqual([2, 1, 3]);
    expect(order('end:asc,size:asc')).toEqual([1, 3, 2]);
    expect(order('end:desc,begin:desc')).toEqual([1, 3, 2]);
  });
});

describe('lines of a report', () => {
  const whole = { min: Float64Array.from([0, 5, 1, 2]), max: Float64Array.from([5, 9, 3, 2]), last: Float64Array.from([5, 6, 2, 2]) };
  it('keep peaks and floors when several pixels become one', () => {
    const half = resample(whole, [0, 40], [0, 40], 2);
    expect([...half.min]).toEqual([0, 1]);
    expect([...half.max]).toEqual([9, 3]);
    expect([...half.last]).toEqual([6, 2]);
  });
  it('repeat a pixel when zoomed into, and are nothing outside', () => {
    expect([...resample(whole, [0, 40], [10, 20], 3).max]).toEqual([9, 9, 9]);
    expect([...resample(whole, [0, 40], [30, 50], 2).max]).toEqual([2, NaN]);
  });
  it('survive the wire', () => {
    expect(decodeLines(encodeLines({ width: 4, series: [whole] })).series[0]).toEqual(whole);
  });
});

describe('a picture of a report', () => {
  // Two slices: blocks 7 (class 1), 8 (class 2), 9 (class 1) of 10, 20 and 30 B; then block 8 alone.
  const graph: Graph = {
    columns: true, reduced: false, t0: 0, t1: 10, m0: 0, m1: 100, mergedWidth: 3, mergedHeight: 4, slices: 2, items: 4,
    begin: Float64Array.from([0, 5]), at: Float64Array.from([1, 6]), total: Float64Array.from([60, 20]),
    low: Float64Array.from([0, 20]), high: Float64Array.from([60, 60]), base: Float64Array.from([0, 0]),
    state: Uint32Array.from([3, 5]), first: Uint32Array.from([0, 3, 4]),
    bytes: Float64Array.from([10, 20, 30, 20]), block: Uint32Array.from([7, 8, 9, 8]), cls: Uint8Array.from([1, 2, 1, 2]),
  };
  it('survives the wire', () => {
    expect(decodeGraph(encodeGraph(graph))).toEqual(graph);
  });
  it('stacks the blocks of the chosen classes only', () => {
    const one = onlyClasses(graph, new Set([1]));
    expect([...one.block]).toEqual([7, 9]);
    expect([...one.first]).toEqual([0, 2, 2]);
    expect([...one.total]).toEqual([40, 0]);
  });
});

describe('a report in the server’s place', () => {
  const rows: Rows = { total: 3, all: 3, offset: 0, columns: kNames.map((name) => ({ name, type: 'int' })), rows: kRows, sum: {} };
  const answers: Recorded[] = [
    { name: 'blocks', parameters: { pool: '0' }, json: rows },
    { name: 'blocks', parameters: { pool: '0', where: '[{"op":"verdict","value":0}]' }, json: { total: 1, blocks: [2] } },
    { name: 'graph', parameters: { pool: '0', order: 'lifetime', colour: 'site', t0: '0', t1: '9' }, base64: 'AQID' },
    { name: 'source', parameters: { input: '0', file: 'a.py', line: '5' }, json: { first_line: 3, lines: ['three', 'four', 'five', 'six', 'seven'], line: 5, end_line: 5 } },
    { name: 'compare', parameters: { a: '0@step:3', b: '0@step:9', by: 'site' }, json: { rows: [] } },
  ];
  const frames = [frameOf('keep', 'a.py', true), frameOf('train', 'b.py', true), frameOf('empty', 'torch/x.py', false)];
  const stacks = [{ input: 0, stack: 4, frames: [2, 0, 1] }];
  const transport = new ReportTransport({ facts: { left_out: [], redacted: [] }, answers, frames, stacks }, () => 'not in this report');
  it('answers the recorded question whatever the window', async () => {
    const bytes = await transport.binary('graph', { pool: 0, order: 'lifetime', colour: 'site', t0: 3, t1: 4, width: 100 });
    expect([...new Uint8Array(bytes)]).toEqual([1, 2, 3]);
  });
  it('filters the rows it has: by what was recorded of a verdict, by stacks, by columns', async () => {
    const of = async (where: string | null): Promise<number[]> =>
      ((await transport.json('blocks', { pool: 0, where, limit: 10 })) as Rows).rows.map((row) => Number(row[0]));
    expect(await of('[{"op":"verdict","value":0}]')).toEqual([2]);
    expect(await of('[{"op":"verdict","value":0},{"column":"size","op":"<","value":1000}]')).toEqual([]);
    expect(await of('[{"op":"verdict","value":1}]')).toEqual([]); // accuses none of the rows
    expect(await of('[{"op":"stack_has","value":"TRAIN"}]')).toEqual([1]);
    expect(await of('[{"column":"size","op":"<","value":1000}]')).toEqual([3]);
    expect(await of(null)).toEqual([1, 2, 3]);
  });
  it('opens a block out of its row and its stack', async () => {
    const block = (await transport.json('block', { pool: 0, block: 1 })) as Block;
    expect(block).toMatchObject({ block: 1, size: 4096, begin: 10, end: 20, address: '0x7f0000000010' });
    expect(block.stack.map((frame) => frame.function)).toEqual(['empty', 'keep', 'train']);
    expect(block.user_frame).toBe(1); // the innermost of the user's own
    await expect(transport.json('block', { pool: 0, block: 9 })).rejects.toThrow('not in this report');
  });
  it('unpacks what was compressed', async () => {
    // zlib.compress(b"\\x01\\x02\\x03") in base64.
    const packed = new ReportTransport(
      { facts: { left_out: [], redacted: [] }, answers: [{ name: 'graph', parameters: { pool: '0', order: 'alloc', colour: 'site' }, packed: 'eJxjZGIGAAANAAc=' }], frames: [], stacks: [] },
      () => '',
    );
    expect([...new Uint8Array(await packed.binary('graph', { pool: 0, order: 'alloc', colour: 'site' }))]).toEqual([1, 2, 3]);
  });
  it('shows as much of a source around a line as was asked for', async () => {
    const source = async (around: number): Promise<Source> =>
      (await transport.json('source', { input: 0, file: 'a.py', line: 5, around })) as Source;
    expect(await source(1)).toMatchObject({ first_line: 4, lines: ['four', 'five', 'six'] });
    expect(await source(9)).toMatchObject({ first_line: 3, lines: ['three', 'four', 'five', 'six', 'seven'] });
  });
  it('says so where it has no answer', async () => {
    await expect(transport.json('compare', { a: '0@step:1', b: '0@step:9', by: 'site' })).rejects.toThrow('not in this report');
  });
});
