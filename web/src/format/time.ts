// Times are nanoseconds since the start of the run, as numbers: 2^53 ns are 104 days.

import { shortNumber } from './bytes';

const kScales: readonly (readonly [number, string])[] = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
];

/** A length of time in the unit it is read best in: "1.25 ms", "3 min 20 s". */
export function formatDuration(ns: number): string {
  if (!Number.isFinite(ns)) return '–';
  const magnitude = Math.abs(ns);
  const sign = ns < 0 ? '−' : '';
  if (magnitude >= 3600e9) {
    const minutes = Math.round(magnitude / 60e9);
    return `${sign}${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }
  if (magnitude >= 120e9) {
    const seconds = Math.round(magnitude / 1e9);
    return `${sign}${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  }
  for (const [scale, unit] of kScales) {
    if (magnitude >= scale) return `${sign}${shortNumber(magnitude / scale)} ${unit}`;
  }
  return '0 s';
}

/** A point in time, with as many decimals as tell `resolution` ns apart: "12.034 s". */
export function formatInstant(ns: number, resolution = 1e3): string {
  const decimals = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(Math.max(resolution, 1)) - 1e-9)));
  const sign = ns < 0 ? '−' : '';
  const magnitude = Math.abs(ns);
  if (magnitude >= 120e9) {
    const rounded = Number((magnitude / 1e9).toFixed(decimals));
    const hours = Math.floor(rounded / 3600);
    const minutes = Math.floor((rounded % 3600) / 60);
    const seconds = (rounded % 60).toFixed(decimals).padStart(decimals > 0 ? decimals + 3 : 2, '0');
    const head = hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}` : String(minutes);
    return `${sign}${head}:${seconds}`;
  }
  return `${sign}${(magnitude / 1e9).toFixed(decimals)} s`;
}

/** "12.5s", "80 ms", "1:20", "3 min", "400us", a bare number of seconds. Null where it is none of these. */
export function parseInstant(text: string): number | null {
  const trimmed = text.trim().toLowerCase();
  const clock = /^(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:\.\d+)?)$/.exec(trimmed);
  if (clock) {
    return Math.round((Number(clock[1] ?? 0) * 3600 + Number(clock[2]) * 60 + Number(clock[3])) * 1e9);
  }
  const match = /^(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|h)?$/.exec(trimmed);
  if (!match) return null;
  const units: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };
  return Math.round(Number(match[1]) * (units[match[2] ?? 's'] ?? 1e9));
}
