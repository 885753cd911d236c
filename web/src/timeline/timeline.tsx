// The timeline: overview, toolbar, chart over the block graph, lanes, legend and what hovers.

import { effect, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

import { type Hit, hitGraph } from '../api/wire';
import { t } from '../i18n';
import { formatInstant } from '../format/time';
import {
  bytesWindow, jumpTo, kShortestBytes, kShortestTime, moveTo, patch, pointerTime, pool, rememberWindow,
  selectBlock, session, timeWindow, view, wholeBytes, wholeTime,
} from '../state/store';
import { ask } from '../api/client';
import type { Located } from '../api/types';
import { theme } from '../ui/theme';
import { Empty } from '../ui/empty';
import { Chart, kGutter, kMargin, plotArea } from './chart';
import { chartColours, laneColours, lineLook } from './look';
import { accusedSites, lanes, legend, lineData, plotWidth } from './data';
import { attachGestures, type GestureTarget } from './gestures';
import { GraphSource } from './graph_source';
import { LaneCanvas, laneHit, laneRows, type Row, rowsHeight } from './lanes';
import { classList, graphColours, LegendBar } from './legend';
import { Overview } from './overview';
import { Toolbar, boxMode } from './toolbar';
import { HoverCard, hovered } from './hover';
import { frameRange } from './viewport';

const size = signal<[number, number]>([0, 0]);
const box = signal<{ left: number; top: number; width: number; height: number } | null>(null);
const graphError = signal<string | null>(null);
const merged = signal<number | null>(null);
let rowsOnScreen: Row[] = [];
/** Overscan of the picture in time, as a share of the window at either side. */
const kOverscan = 0.12;

export function Timeline({ height }: { height: number }) {
  const plotHost = useRef<HTMLDivElement>(null);
  const laneHost = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const host = plotHost.current;
    const canvas = laneHost.current;
    const outer = frame.current;
    if (!host || !canvas || !outer) return undefined;
    return mountTimeline(host, canvas, outer);
  }, []);

  const [width] = size.value;
  const here = pool.value;
  return (
    <section class="timeline" aria-label={t('timeline.title')} style={{ height: `${height}px` }}>
      <Toolbar />
      <div class="timeline-frame" ref={frame}>
        <Overview width={width} />
        <div class="plot" ref={plotHost} tabIndex={0} role="application" aria-label={t('timeline.canvas')}>
          {box.value && <div class="box" style={pixels(box.value)} />}
          {here && here.blocks === 0 && <Empty title={t('timeline.empty')} action={t('timeline.empty.do')} />}
          {graphError.value !== null && <div class="plot-note error">{graphError.value}</div>}
          {merged.value !== null && <div class="plot-note">{t('timeline.merged', merged.value)}</div>}
        </div>
        <canvas class="lanes" ref={laneHost} />
        <PointerLine width={width} />
        <HoverCard />
      </div>
      <LegendBar />
    </section>
  );
}

function pixels(rectangle: { left: number; top: number; width: number; height: number }) {
  return {
    left: `${rectangle.left}px`,
    top: `${rectangle.top}px`,
    width: `${rectangle.width}px`,
    height: `${rectangle.height}px`,
  };
}

function PointerLine({ width }: { width: number }) {
  const at = pointerTime.value;
  const [t0, t1] = timeWindow.value;
  const scale = (width - kGutter - kMargin) / (t1 - t0);
  const marks: { at: number; name: string }[] = [];
  if (at !== null) marks.push({ at, name: 'pointer' });
  const { at: instant, against } = view.value;
  if (view.value.tab === 'composition') {
    if (instant !== null && instant >= 0) marks.push({ at: instant, name: 'instant' });
    if (against !== null) marks.push({ at: against, name: 'instant against' });
  }
  return (
    <>
      {marks
        .filter((mark) => mark.at >= t0 && mark.at <= t1)
        .map((mark) => (
          <div key={mark.name} class={`time-line ${mark.name}`} style={{ left: `${kGutter + (mark.at - t0) * scale}px` }}>
            <span class={mark.at > (t0 + t1) / 2 ? 'before' : ''}>{formatInstant(mark.at, (t1 - t0) / 2000)}</span>
          </div>
        ))}
    </>
  );
}

function mountTimeline(host: HTMLElement, canvas: HTMLCanvasElement, outer: HTMLElement): () => void {
  const undo: (() => void)[] = [];
  const chart = new Chart(host, chartColours());
  const laneCanvas = new LaneCanvas(canvas);
  const source = new GraphSource(
    () => {
      graphError.value = null;
      chart.setPicture(source.picture, source.backdrop);
      const graph = source.picture?.graph;
      merged.value = graph?.reduced ? Math.round(graph.mergedHeight) : null;
    },
    (error) => (graphError.value = String(error)),
  );

  const observer = new ResizeObserver(() => {
    size.value = [host.clientWidth, host.clientHeight];
    plotWidth.value = Math.max(host.clientWidth - kGutter - kMargin, 0);
    chart.resize(host.clientWidth, host.clientHeight);
  });
  observer.observe(host);
  undo.push(() => observer.disconnect());

  undo.push(
    effect(() => {
      void theme.value;
      chart.recolour(chartColours());
    }),
    effect(() => chart.setWindow(timeWindow.value, bytesWindow.value)),
    effect(() => chart.choose(view.value.block)),
    effect(() => {
      void theme.value;
      const data = lineData.value;
      if (!data) return;
      const shown = data.series.filter((series) => lineLook(series.key).over);
      const styles = shown.map((series) => lineLook(series.key).style);
      const values = shown.map((series) => series.values);
      const floor = data.series[0]?.low;
      if (floor) {
        styles.push(lineLook('floor').style);
        values.push(floor);
      }
      chart.setLines(styles, data.x, values);
    }),
    effect(() => {
      const data = lineData.value;
      void theme.value;
      const counters = (data?.series ?? [])
        .filter((series) => !lineLook(series.key).over)
        .map((series) => ({
          label: lineLook(series.key).style.label,
          values: series.values,
          time: data?.time ?? ([0, 1] as const),
          pool: series.key.startsWith('allocated:') ? Number(series.key.split(':')[1]) : null,
        }));
      const labels = { steps: t('timeline.lane.steps'), phases: t('timeline.lane.phases'), marks: t('timeline.lane.marks') };
      const rows = laneRows(lanes.value, counters, labels);
      rowsOnScreen = rows;
      canvas.style.height = `${rowsHeight(rows)}px`;
      const width = size.value[0];
      if (width > 100) laneCanvas.draw(width, timeWindow.value, lanes.value, rows, laneColours(), getComputedStyle(document.body).fontFamily);
    }),
    effect(() => {
      const here = pool.value;
      const known = legend.value;
      const open = session.value;
      const [width, height] = size.value;
      if (!here || !known || known.colour !== view.value.colour || !open || width < 100 || height < 60) return;
      const area = plotArea(width, height);
      const ratio = Math.min(globalThis.devicePixelRatio, 2);
      const [t0, t1] = timeWindow.value;
      const whole = wholeTime.value;
      const span = t1 - t0;
      const wide: [number, number] = [Math.max(t0 - span * kOverscan, whole[0]), Math.min(t1 + span * kOverscan, whole[1])];
      source.want({
        pool: here.id,
        generation: open.generation,
        time: [Math.floor(wide[0]), Math.max(Math.ceil(wide[1]), Math.floor(wide[0]) + 1)],
        bytes: bytesWindow.value,
        width: Math.min(Math.max(Math.round(area.width * ratio * ((wide[1] - wide[0]) / span)), 1), 4096),
        height: Math.min(Math.max(Math.round(area.height * ratio), 1), 4096),
        order: view.value.order,
        colour: view.value.colour,
        classes: classList(known, view.value.hidden),
        sample: view.value.sample,
        detail: view.value.tidy ? 'tidy' : 'exact',
        colours: graphColours(known, accusedSites.value, view.value.site, theme.value),
      });
    }),
  );

  const target = gestureTarget(chart, source);
  undo.push(attachGestures(host, target));
  undo.push(attachLanes(canvas, outer));
  return () => {
    undo.forEach((step) => step());
    source.close();
    chart.destroy();
  };
}

function gestureTarget(chart: Chart, source: GraphSource): GestureTarget {
  // The sharper picture first; where it does not reach, the one behind it.
  const hitAt = (time: number, bytes: number): Hit | null => {
    const shown = [source.picture, source.backdrop].find((picture) => {
      const graph = picture?.graph;
      return graph && time >= graph.t0 && time <= graph.t1 && bytes >= graph.m0 && bytes <= graph.m1;
    });
    return shown ? hitGraph(shown.graph, time, bytes) : null;
  };
  const locate = (state: number, bytes: number): Promise<Located> =>
    ask<Located>('locate', {
      pool: pool.value?.id, state, bytes: Math.max(Math.floor(bytes), 0), order: view.value.order,
      colour: view.value.colour, classes: legend.value ? classList(legend.value, view.value.hidden) : null,
    });
  return {
    area: () => chart.area,
    time: () => timeWindow.value,
    bytes: () => bytesWindow.value,
    limits: () => ({
      time: wholeTime.value, bytes: wholeBytes.value, shortestTime: kShortestTime, shortestBytes: kShortestBytes,
    }),
    move: moveTo,
    begin: () => rememberWindow(),
    hover: (time, bytes, x, y) => {
      pointerTime.value = time;
      const hit = time === null ? null : hitAt(time, bytes);
      hovered.value = time === null ? null : { x, y, time, bytes, hit, floor: view.value.sample === 'floor' };
    },
    click: (time, bytes) => {
      const hit = hitAt(time, bytes);
      if (!hit) { selectBlock(null); return; }
      if (hit.block !== null) { selectBlock(hit.block); return; }
      locate(hit.state, bytes).then((found) => selectBlock(found.block), () => selectBlock(null));
    },
    doubleClick: (time, shift) =>
      patch(shift ? { against: Math.round(time), tab: 'composition' } : { at: Math.round(time), tab: 'composition' }),
    box: (rectangle) => (box.value = rectangle),
    boxByDefault: () => boxMode.value,
  };
}

// A click on a step, phase or mark shows it.
function attachLanes(canvas: HTMLCanvasElement, outer: HTMLElement): () => void {
  const control = new AbortController();
  const find = (event: MouseEvent) => {
    const bounds = canvas.getBoundingClientRect();
    const [t0, t1] = timeWindow.value;
    const scale = (t1 - t0) / Math.max(size.value[0] - kGutter - kMargin, 1);
    const at = t0 + (event.clientX - bounds.left - kGutter) * scale;
    const item = laneHit(lanes.value, rowsOnScreen, at, event.clientY - bounds.top, 5 * scale);
    return { at, item, inside: at >= t0 && at <= t1 };
  };
  canvas.addEventListener('click', (event) => {
    const { item } = find(event);
    if (item?.pool !== undefined) patch({ pool: item.pool, bytes: null, block: null, pins: [], site: null, hidden: [], zoom: '' });
    else if (item && item.end > item.begin) jumpTo(frameRange([item.begin, item.end], 0.15, wholeTime.value, kShortestTime), null);
  }, { signal: control.signal });
  canvas.addEventListener('pointermove', (event) => {
    const { at, item, inside } = find(event);
    pointerTime.value = inside ? at : null;
    const bounds = outer.getBoundingClientRect();
    hovered.value = item
      ? { x: event.clientX - bounds.left, y: event.clientY - bounds.top, time: at, bytes: 0, hit: null, floor: false, lane: item }
      : null;
  }, { signal: control.signal });
  canvas.addEventListener('pointerleave', () => {
    pointerTime.value = null;
    hovered.value = null;
  }, { signal: control.signal });
  return () => control.abort();
}
