// A curve the size of a word.

/** Points of a polyline in a w × h box, zero at the bottom. */
export function sparkPoints(values: readonly number[], w: number, h: number): string {
  const top = Math.max(...values, 1);
  const last = Math.max(values.length - 1, 1);
  return values.map((value, i) => `${((i / last) * w).toFixed(1)},${(h - (Math.max(value, 0) / top) * (h - 1.5) - 0.5).toFixed(1)}`).join(' ');
}

export function Spark({ values, accused, width: w = 120 }: { values: readonly number[]; accused: boolean; width?: number }) {
  const h = 18;
  const points = sparkPoints(values, w, h);
  return (
    <svg class={accused ? 'spark accused' : 'spark'} width={w} height={h} viewBox={`0 0 ${w} ${h}`} aria-hidden="true">
      <polygon points={`0,${h} ${points} ${w},${h}`} />
      <polyline points={points} />
    </svg>
  );
}
