import { describe, expect, it } from 'vitest';

import type { Pool } from '../api/types';
import { nested } from './nesting';

function pool(id: number, device: string, layer: string, input = 0): Pool {
  return {
    id, input, device, layer, name: `${device} ${layer}`, begin: 0, end: 1, events: 2, blocks: 1, live_blocks: 1, live_bytes: 1,
    peak: { bytes: 1, time: 0 }, reported: false, reserved: false, owners: false, accused: [],
  };
}
const drawn = (pools: Pool[]): string[] => nested(pools).map((row) => `${'  '.repeat(row.depth)}${row.pool.name}`);

describe('which memory lies within which', () => {
  it('puts a layer behind the one it takes its memory from', () => {
    expect(drawn([pool(0, 'cpu', 'tensor'), pool(1, 'cuda:0', 'pool'), pool(2, 'cuda:0', 'driver'), pool(3, 'cpu', 'host')])).toEqual([
      'cuda:0 driver', '  cuda:0 pool', 'cpu host', '  cpu tensor',
    ]);
  });
  it('never across devices or processes', () => {
    expect(drawn([pool(0, 'npu:0', 'driver'), pool(1, 'npu:1', 'pool'), pool(2, 'npu:0', 'pool', 1)])).toEqual([
      'npu:0 driver', 'npu:1 pool', 'npu:0 pool',
    ]);
  });
  it('has each of them once, whatever is missing between', () => {
    // A workspace lies within a pool, else within the driver.
    expect(drawn([pool(0, 'npu:0', 'workspace'), pool(1, 'npu:0', 'driver')])).toEqual(['npu:0 driver', '  npu:0 workspace']);
  });
});
