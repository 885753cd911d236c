// Which memory lies within which: layers nest, so that their bytes are never added up.

import type { Pool } from '../api/types';

/** What a layer takes its memory from (design: layers nest). */
const kOuter: Record<string, readonly string[]> = {
  pool: ['driver'], workspace: ['pool', 'driver'], tensor: ['host'], pinned: ['host'], python: ['host'],
};

/** The smallest of the layers there are that `inner` lies within. */
export function outerOf(inner: Pool, pools: readonly Pool[]): Pool | null {
  for (const layer of kOuter[inner.layer] ?? []) {
    const device = layer === 'host' ? 'cpu' : inner.device;
    const found = pools.find((candidate) => candidate.input === inner.input && candidate.layer === layer && candidate.device === device);
    if (found) return found;
  }
  return null;
}

/** Pools with those that lie within them behind, one level deeper. */
export function nested(pools: readonly Pool[]): { pool: Pool; depth: number; outer: Pool | null }[] {
  const rows: { pool: Pool; depth: number; outer: Pool | null }[] = [];
  const add = (outer: Pool | null, depth: number): void => {
    for (const candidate of pools) {
      if (outerOf(candidate, pools) !== outer) continue;
      rows.push({ pool: candidate, depth, outer });
      add(candidate, depth + 1);
    }
  };
  add(null, 0);
  return rows;
}
