import { describe, expect, it } from 'vitest';

import { csvText } from './csv';

describe('csv', () => {
  it('quotes what needs it and knows no value', () => {
    expect(csvText([{ name: 'a "b", c', bytes: 12, owner: null }])).toBe('name,bytes,owner\r\n"a ""b"", c",12,\r\n');
  });
  it('lets no spreadsheet run a cell; numbers stay numbers', () => {
    expect(csvText([{ name: '=1+1', delta: -5 }])).toBe("name,delta\r\n'=1+1,-5\r\n");
  });
  it('of nothing is nothing but an empty head', () => {
    expect(csvText([])).toBe('\r\n');
  });
});
