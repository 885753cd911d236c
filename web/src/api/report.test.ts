import { describe, expect, it } from 'vitest';

import { compareRows, keeps } from './local_rows';
import { type Recorded, ReportTransport, resample } from './report';
import type { Cell, Rows } from './types';
import { decodeLines, encodeLines } from './wire';

const kNames = ['block', 'address', 'size', 'begin', 'end', 'site'];
const kRows: Cell[][] = [
  [1, '0x7f0000000010', 4096, 10, 20, 'a.py:1'],
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

describe('a report in the server’s place', () => {
  const rows: Rows = { total: 3, all: 3, offset: 0, columns: kNames.map((name) => ({ name, type: 'int' })), rows: kRows, sum: {} };
  const answers: Recorded[] = [
    { name: 'blocks', parameters: { pool: '0' }, json: rows },
    { name: 'blocks', parameters: { pool: '0', where: '[{"op":"verdict","value":0}]' }, json: { ...rows, rows: kRows.slice(1, 2) } },
    { name: 'graph', parameters: { pool: '0', order: 'lifetime', colour: 'site', t0: '0', t1: '9' }, base64: 'AQID' },
    { name: 'compare', parameters: { a: '0@step:3', b: '0@step:9', by: 'site' }, json: { rows: [] } },
  ];
  const transport = new ReportTransport(answers, () => 'not in this report');
  it('answers the recorded question whatever the window', async () => {
    const bytes = await transport.binary('graph', { pool: 0, order: 'lifetime', colour: 'site', t0: 3, t1: 4, width: 100 });
    expect([...new Uint8Array(bytes)]).toEqual([1, 2, 3]);
  });
  it('prefers the very question, else filters the rows it has', async () => {
    const of = async (where: string | null): Promise<number[]> =>
      ((await transport.json('blocks', { pool: 0, where, limit: 10 })) as Rows).rows.map((row) => Number(row[0]));
    expect(await of('[{"op":"verdict","value":0}]')).toEqual([2]);
    expect(await of('[{"column":"size","op":"<","value":1000}]')).toEqual([3]);
    expect(await of(null)).toEqual([1, 2, 3]);
  });
  it('says so where it has no answer', async () => {
    await expect(transport.json('compare', { a: '0@step:1', b: '0@step:9', by: 'site' })).rejects.toThrow('not in this report');
  });
});
