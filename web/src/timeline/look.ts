// The style sheet's colours as the canvases need them, and how each line is drawn.

import { t } from '../i18n';
import type { Pool } from '../api/types';
import { pool, session } from '../state/store';
import { cssVariable } from '../ui/css';
import type { ChartColours, LineStyle } from './chart';
import type { LaneColours } from './lanes';

export function chartColours(): ChartColours {
  return {
    text: cssVariable('--ink-2'),
    faint: cssVariable('--ink-3'),
    grid: cssVariable('--grid'),
    ground: cssVariable('--ground'),
    veil: cssVariable('--veil'),
    accent: cssVariable('--chosen'),
  };
}

export function laneColours(): LaneColours {
  return {
    text: cssVariable('--ink-2'),
    faint: cssVariable('--ink-3'),
    even: cssVariable('--lane-even'),
    odd: cssVariable('--lane-odd'),
    phases: {
      forward: cssVariable('--phase-forward'),
      backward: cssVariable('--phase-backward'),
      optimizer: cssVariable('--phase-optimizer'),
      other: cssVariable('--lane-even'),
      '': cssVariable('--lane-even'),
    },
    mark: cssVariable('--accent'),
    oom: cssVariable('--danger'),
    line: cssVariable('--line-process'),
    grid: cssVariable('--grid'),
    ground: cssVariable('--ground'),
  };
}

export interface LineLook {
  style: LineStyle;
  /** Drawn over the block graph, on its axis; else in a lane of its own. */
  over: boolean;
}

/** How a series is drawn in the pane of a pool. */
export function lineLook(key: string, pane: Pool | null = pool.value): LineLook {
  const line = (label: string, colour: string, over: boolean, width: number, dash?: number[]): LineLook => ({
    style: { label, stroke: cssVariable(colour), width, ...(dash ? { dash } : {}) },
    over,
  });
  if (key === 'floor') return line(t('timeline.line.floor'), '--line-floor', true, 1, [3, 3]);
  const poolId = Number(key.split(':')[1]);
  if (key.startsWith('allocated:') && poolId !== pane?.id) {
    const other = session.value?.pools.find((candidate) => candidate.id === poolId);
    return line(other?.name ?? key, '--line-allocated', false, 1.25);
  }
  if (key.startsWith('allocated:')) return line(t('timeline.line.allocated'), '--line-allocated', true, 1);
  if (key.startsWith('reserved:') && poolId !== pane?.id) return line(key, '--line-reserved', false, 1.25);
  if (key.startsWith('reserved:')) return line(t('timeline.line.reserved'), '--line-reserved', true, 1.5);
  const counter = session.value?.inputs.find((candidate) => candidate.id === poolId)?.counters[Number(key.split(':')[2])];
  const name = counter?.name ?? key;
  if (name === 'active') {
    const mine = pane !== null && counter?.device === pane.device && (counter.layer === null || counter.layer === pane.layer);
    return line(t('timeline.line.active'), '--line-active', mine, 1.25);
  }
  if (name === 'rss') return line(t('timeline.line.rss'), '--line-process', false, 1.25);
  if (name.startsWith('device')) return line(`${t('timeline.line.device')} ${name}`, '--line-device', false, 1.25);
  return line(name, '--line-process', false, 1.25);
}
