import { describe, expect, it } from 'vitest';

import { en } from './en';
import { zh } from './zh';

const holes = (text: string): string[] => [...text.matchAll(/\{\d\}/g)].map((match) => match[0]).sort();

describe('the two languages', () => {
  it('fill the same holes', () => {
    for (const key of Object.keys(en) as (keyof typeof en)[]) expect([key, holes(zh[key])]).toEqual([key, holes(en[key])]);
  });
  it('leave nothing empty', () => {
    for (const text of [...Object.values(en), ...Object.values(zh)]) expect(text.trim()).not.toBe('');
  });
});
