// The strip over the timeline: the whole run, zero-based, and the window on it as a brush.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

import { askBinary, isAbort } from '../api/client';
import { decodeLines } from '../api/wire';
import { t } from '../i18n';
import { moveTo, pool, rememberWindow, session, timeWindow, view, wholeTime } from '../state/store';
import { cssVariable } from '../ui/css';
import { theme } from '../ui/theme';
import { kGutter, kMargin } from './chart';
import { panRange, type Range } from './viewport';

const kHeight = 40;
const kHandle = 6;

export function Overview({ width }: { width: number }) {
  const host = useRef<HTMLDivElement>(null);
  const here = pool.value?.id;
  const generation = session.value?.generation;
  const whole = wholeTime.value;
  const look = theme.value;

  useEffect(() => {
    const element = host.current;
    if (!element || here === undefined || width < 200) return;
    const control = new AbortController();
    let plot: uPlot | null = null;
    const points = Math.max(64, Math.floor(width - kGutter - kMargin));
    askBinary('lines', { series: `allocated:${here}`, t0: Math.floor(whole[0]), t1: Math.ceil(whole[1]), width: points }, control.signal)
      .then((buffer) => {
        const lines = decodeLines(buffer);
        const highest = lines.series[0]?.max ?? new Float64Array();
        const x = Array.from(highest, (_value, i) => whole[0] + ((i + 0.5) / points) * (whole[1] - whole[0]));
        const y = Array.from(highest, (value) => (Number.isFinite(value) ? value : null));
        const top = y.reduce<number>((most, value) => Math.max(most, value ?? 0), 1);
        plot = new uPlot(
          {
            width,
            height: kHeight,
            padding: [3, kMargin, 0, kGutter],
            cursor: { show: false },
            legend: { show: false },
            axes: [{ show: false }, { show: false }],
            scales: { x: { time: false, range: [whole[0], whole[1]] }, y: { range: [0, top * 1.05] } },
            series: [{}, { stroke: cssVariable('--line-allocated'), width: 1, fill: cssVariable('--overview-fill'), points: { show: false } }],
          },
          [x, y],
          element,
        );
      })
      .catch((error: unknown) => {
        if (!isAbort(error)) console.warn(error);
      });
    return () => {
      control.abort();
      plot?.destroy();
    };
  }, [here, generation, whole[0], whole[1], width, look]);

  const scale = (width - kGutter - kMargin) / (whole[1] - whole[0]);
  const [t0, t1] = timeWindow.value;
  const left = kGutter + (t0 - whole[0]) * scale;
  const right = kGutter + (t1 - whole[0]) * scale;
  const everything = view.value.time === null;
  return (
    <div class="overview" style={{ height: `${kHeight}px` }} title={t('timeline.overview')} onPointerDown={(event) => drag(event, scale)}>
      <div ref={host} />
      <div class="overview-out" style={{ left: `${kGutter}px`, width: `${Math.max(left - kGutter, 0)}px` }} />
      <div class="overview-out" style={{ left: `${right}px`, width: `${Math.max(width - kMargin - right, 0)}px` }} />
      <div class={everything ? 'brush whole' : 'brush'} style={{ left: `${left}px`, width: `${Math.max(right - left, 2)}px` }} />
    </div>
  );
}

// On the brush: moves it; at its edges: resizes it; beside it: a new one.
function drag(event: PointerEvent, scale: number): void {
  if (event.button !== 0) return;
  const strip = event.currentTarget as HTMLElement;
  const box = strip.getBoundingClientRect();
  const whole = wholeTime.value;
  const at = (clientX: number): number =>
    Math.min(Math.max(whole[0] + (clientX - box.left - kGutter) / scale, whole[0]), whole[1]);
  const start: Range = timeWindow.value;
  const from = at(event.clientX);
  const reach = kHandle / scale;
  const mode =
    view.value.time === null ? 'new'
    : Math.abs(from - start[0]) < reach ? 'left'
    : Math.abs(from - start[1]) < reach ? 'right'
    : from > start[0] && from < start[1] ? 'move' : 'new';
  strip.setPointerCapture(event.pointerId);
  let remembered = false;
  const move = (next: PointerEvent): void => {
    if (!remembered && Math.abs(next.clientX - event.clientX) < 3) return;
    if (!remembered) rememberWindow();
    remembered = true;
    const to = at(next.clientX);
    const range: Range =
      mode === 'move' ? panRange(start, to - from, whole)
      : mode === 'left' ? [Math.min(to, start[1] - reach), start[1]]
      : mode === 'right' ? [start[0], Math.max(to, start[0] + reach)]
      : [Math.min(from, to), Math.max(from, to, Math.min(from, to) + reach)];
    moveTo(range, view.value.bytes);
  };
  const done = (): void => {
    strip.removeEventListener('pointermove', move);
    strip.removeEventListener('pointerup', done);
    strip.removeEventListener('pointercancel', done);
  };
  strip.addEventListener('pointermove', move);
  strip.addEventListener('pointerup', done);
  strip.addEventListener('pointercancel', done);
}
