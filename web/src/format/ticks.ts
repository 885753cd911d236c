// Round ticks: bytes step by powers of two, times by 1, 2 and 5 (and by 15, 30 and 60 for minutes).

export interface Ticks {
  values: number[];
  step: number;
}

/** Multiples of 1, 2, 4 … 512 × 1024^k, at most `most` of them, from `low` to `high`. */
export function byteTicks(low: number, high: number, most: number): Ticks {
  const span = Math.max(high - low, 1);
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(span / Math.max(most, 1))));
  return { values: multiples(low, high, step), step };
}

const kLongSteps = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

export function timeTicks(low: number, high: number, most: number): Ticks {
  const target = Math.max((high - low) / Math.max(most, 1), 1);
  let step: number;
  if (target > 30e9) {
    step = (kLongSteps.find((seconds) => seconds * 1e9 >= target) ?? 86400 * Math.ceil(target / 86400e9)) * 1e9;
  } else if (target > 10e9) {
    step = target > 15e9 ? 30e9 : 15e9;
  } else {
    const power = 10 ** Math.floor(Math.log10(target));
    const lead = target / power;
    step = (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
  }
  return { values: multiples(low, high, step), step };
}

function multiples(low: number, high: number, step: number): number[] {
  const values: number[] = [];
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  for (let k = first; k <= last && values.length < 200; k += 1) values.push(k * step);
  return values;
}
