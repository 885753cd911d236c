import { describe, expect, it } from 'vitest';

import { parseAddress } from './address';
import { formatBytes, formatBytesSigned, formatCount, formatCountShort, formatPercent, parseBytes } from './bytes';
import { baseName, shorten } from './path';
import { byteTicks, timeTicks } from './ticks';
import { formatDuration, formatInstant, parseInstant } from './time';

describe('bytes', () => {
  it('have binary units and three digits', () => {
    expect(formatBytes(0)).toBe('0 B');
    expect(formatBytes(1023)).toBe('1023 B');
    expect(formatBytes(1024)).toBe('1 KiB');
    expect(formatBytes(1536)).toBe('1.5 KiB');
    expect(formatBytes(64 * 1024)).toBe('64 KiB');
    expect(formatBytes(19_660_800)).toBe('18.8 MiB'); // 18.75 MiB
    expect(formatBytes(40.6 * 2 ** 30)).toBe('40.6 GiB');
  });
  it('never read "1024 KiB"', () => {
    expect(formatBytes(1024 * 1024 - 1)).toBe('1 MiB');
    expect(formatBytes(1023.6 * 1024)).toBe('1 MiB');
  });
  it('carry their sign where they are a difference', () => {
    expect(formatBytesSigned(65536)).toBe('+64 KiB');
    expect(formatBytesSigned(-65536)).toBe('−64 KiB');
    expect(formatBytesSigned(0)).toBe('0 B');
  });
  it('are understood as people type them', () => {
    expect(parseBytes('64k')).toBe(65536);
    expect(parseBytes('1.5 GiB')).toBe(1610612736);
    expect(parseBytes('4,096')).toBe(4096);
    expect(parseBytes('0x400')).toBe(1024);
    expect(parseBytes('12 b')).toBe(12);
    expect(parseBytes('much')).toBeNull();
    expect(parseBytes('')).toBeNull();
  });
});

describe('counts and shares', () => {
  it('group digits', () => {
    expect(formatCount(1234567)).toBe('1,234,567');
    expect(formatCount(-1234)).toBe('−1,234');
    expect(formatCount(999)).toBe('999');
    expect(formatCountShort(9_990_000)).toBe('9.99 M');
    expect(formatCountShort(5126)).toBe('5,126');
  });
  it('keep small shares visible', () => {
    expect(formatPercent(0.985)).toBe('98.5 %');
    expect(formatPercent(0.0001)).toBe('<0.1 %');
    expect(formatPercent(0)).toBe('0 %');
  });
});

describe('times', () => {
  it('are read in their own unit', () => {
    expect(formatDuration(250)).toBe('250 ns');
    expect(formatDuration(1_250_000)).toBe('1.25 ms');
    expect(formatDuration(2.5e9)).toBe('2.5 s');
    expect(formatDuration(200e9)).toBe('3 min 20 s');
    expect(formatDuration(7260e9)).toBe('2 h 1 min');
    expect(formatDuration(0)).toBe('0 s');
  });
  it('show as many decimals as the window tells apart', () => {
    expect(formatInstant(12_034_000_000, 1e6)).toBe('12.034 s');
    expect(formatInstant(12_034_000_000, 1e9)).toBe('12 s');
    expect(formatInstant(1_000, 1)).toBe('0.000001000 s');
    expect(formatInstant(3_725_000_000_000, 1e9)).toBe('1:02:05');
    expect(formatInstant(125_500_000_000, 1e8)).toBe('2:05.5');
  });
  it('are understood as people type them', () => {
    expect(parseInstant('1.5 s')).toBe(1.5e9);
    expect(parseInstant('80ms')).toBe(8e7);
    expect(parseInstant('400us')).toBe(4e5);
    expect(parseInstant('1:20')).toBe(80e9);
    expect(parseInstant('1:00:00')).toBe(3600e9);
    expect(parseInstant('2')).toBe(2e9);
    expect(parseInstant('soon')).toBeNull();
  });
  it('survive being shown and typed again', () => {
    for (const ns of [0, 1e6, 1.234e9, 119e9]) expect(parseInstant(formatInstant(ns, 1))).toBe(ns);
  });
});

describe('ticks', () => {
  it('of bytes are multiples of a power of two, from zero', () => {
    const { values, step } = byteTicks(0, 24.9 * 2 ** 20, 5);
    expect(step).toBe(8 * 2 ** 20); // 24.9 / 5 = 4.98 → 8 MiB
    expect(values.map(formatBytes)).toEqual(['0 B', '8 MiB', '16 MiB', '24 MiB']);
  });
  it('of time step by 1, 2, 5 and then by whole minutes', () => {
    expect(timeTicks(0, 1.2e9, 12).step).toBe(1e8);
    expect(timeTicks(0, 1.3e9, 6).step).toBe(5e8);
    expect(timeTicks(0, 600e9, 10).step).toBe(60e9);
    expect(timeTicks(5e8, 1.5e9, 4).values).toEqual([5e8, 1e9, 1.5e9]);
  });
  it('stay few in any window', () => {
    for (const span of [1, 17, 1e3, 1e7, 1e12, 8e15]) {
      expect(timeTicks(0, span, 8).values.length).toBeLessThanOrEqual(10);
      expect(byteTicks(0, span, 8).values.length).toBeLessThanOrEqual(10);
    }
  });
});

describe('addresses', () => {
  it('are hexadecimal or decimal, all 64 bits of them', () => {
    expect(parseAddress('0x7F00')).toBe('0x7f00');
    expect(parseAddress('32512')).toBe('0x7f00');
    expect(parseAddress('7fab00')).toBe('0x7fab00');
    expect(parseAddress('18446744073709551615')).toBe('0xffffffffffffffff');
    expect(parseAddress('0x10000000000000000')).toBeNull();
    expect(parseAddress('xyz')).toBeNull();
  });
});

describe('paths and statements', () => {
  it('are cut in the middle', () => {
    expect(baseName('/a/b/train.py')).toBe('train.py');
    expect(shorten('abcdefghij', 7)).toBe('abcd…ij');
    expect(shorten('x'.repeat(100_000), 40)).toHaveLength(40);
  });
});
