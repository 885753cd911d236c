// One pool's pane: its block graph under its lines, on the time axis that all panes share and on a
// scale of bytes of its own. The chosen pane is the one that the tables are about; a click chooses.

import { batch, effect, signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { ask } from '../api/client';
import type { Located, Pool } from '../api/types';
import { type Hit, hitGraph } from '../api/wire';
import { formatBytes } from '../format/bytes';
import { t } from '../i18n';
import { pictureDone } from '../state/first_picture';
import {
  bytesWindow, edition, focusPool, kShortestBytes, kShortestTime, moveTo, patch, pointerTime, pool, rememberWindow,
  selectBlock, session, timeWindow, togglePane, view, wholeBytesOf, wholeTime,
} from '../state/store';
import { theme } from '../ui/theme';
import { Empty } from '../ui/empty';
import { Icon } from '../ui/icon';
import { Chart, kGutter, kMargin, plotArea } from './chart';
import { accusedOf, legendOf, lineData, plotWidth } from './data';
import { attachGestures, type GestureTarget } from './gestures';
import { GraphSource } from './graph_source';
import { hovered } from './hover';
import { classList, graphColours } from './legend';
import { chartColours, lineLook } from './look';
import { boxMode } from './toolbar';
import type { Range } from './viewport';

/** Overscan of the picture in time, as a share of the window at either side. */
const kOverscan = 0.12;
const poolOf = (id: number): Pool | null => session.value?.pools.find((candidate) => candidate.id === id) ?? null;

/** What one pane has on screen, beside its canvas. */
class PaneState {
  readonly size = signal<[number, number]>([0, 0]);
  readonly box = signal<{ left: number; top: number; width: number; height: number } | null>(null);
  readonly error = signal<string | null>(null);
  readonly merged = signal<number | null>(null);
  readonly last = signal(true);
}

interface PaneProps {
  id: number;
  frame: RefObject<HTMLElement>;
  alone: boolean;
  last: boolean;
}

export function Pane({ id, frame, alone, last }: PaneProps) {
  const host = useRef<HTMLDivElement>(null);
  const held = useRef<PaneState>();
  const state = (held.current ??= new PaneState());
  useEffect(() => {
    const element = host.current;
    const outer = frame.current;
    return element && outer ? mount(id, element, outer, state) : undefined;
  }, []);
  useEffect(() => {
    state.last.value = last;
  }, [last]);

  const here = poolOf(id);
  if (!here) return null;
  const chosen = id === pool.value?.id;
  const box = state.box.value;
  return (
    <div class={['pane-frame', chosen ? 'chosen' : '', last ? 'last' : ''].join(' ')} data-pool={id}>
      {!alone && <Title pool={here} chosen={chosen} />}
      <div class="plot" ref={host} tabIndex={0} role="application" aria-label={`${here.name}: ${t('timeline.canvas')}`}>
        {box && <div class="box" style={{ left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` }} />}
        {here.blocks === 0 && <Empty title={t('timeline.empty')} action={t('timeline.empty.do')} />}
        {state.error.value !== null && <div class="plot-note error">{state.error.value}</div>}
        {state.merged.value !== null && <div class="plot-note">{t('timeline.merged', state.merged.value)}</div>}
      </div>
    </div>
  );
}

function Title({ pool: here, chosen }: { pool: Pool; chosen: boolean }) {
  return (
    <div class="pane-title">
      <button type="button" class="pane-name" aria-pressed={chosen} title={t('memory.focus')} onClick={() => focusPool(here.id)}>
        {here.accused.length > 0 && <i class="dot" />}
        <b>{here.name}</b>
        <span>{t('memory.facts', formatBytes(here.peak.bytes), formatBytes(here.live_bytes))}</span>
      </button>
      <button type="button" class="icon" title={t('memory.hide', here.name)} aria-label={t('memory.hide', here.name)} onClick={() => togglePane(here.id)}>
        <Icon name="close" />
      </button>
    </div>
  );
}

function mount(id: number, host: HTMLElement, outer: HTMLElement, state: PaneState): () => void {
  const undo: (() => void)[] = [];
  const isChosen = (): boolean => pool.value?.id === id;
  const bytes = (): Range => (isChosen() ? bytesWindow.value : wholeBytesOf(poolOf(id)));
  const chart = new Chart(host, chartColours(), state.last.peek());
  const source = new GraphSource(
    () => {
      state.error.value = null;
      chart.setPicture(source.picture, source.backdrop);
      if (source.picture) requestAnimationFrame(() => pictureDone(true));
      const graph = source.picture?.graph;
      state.merged.value = graph?.reduced ? Math.round(graph.mergedHeight) : null;
    },
    (error) => {
      state.error.value = String(error);
      pictureDone(false);
    },
  );

  const observer = new ResizeObserver(() => {
    batch(() => {
      state.size.value = [host.clientWidth, host.clientHeight];
      plotWidth.value = Math.max(host.clientWidth - kGutter - kMargin, 0);
    });
    chart.resize(host.clientWidth, host.clientHeight);
  });
  observer.observe(host);
  undo.push(() => observer.disconnect());

  undo.push(
    effect(() => {
      void theme.value;
      chart.recolour(chartColours());
    }),
    effect(() => chart.setTimeAxis(state.last.value)),
    effect(() => chart.setWindow(timeWindow.value, bytes())),
    effect(() => chart.choose(isChosen() ? view.value.block : null)),
    effect(() => {
      void theme.value;
      const data = lineData.value;
      const here = poolOf(id);
      if (!data || !here) return;
      const shown = data.series.filter((series) => lineLook(series.key, here).over);
      const styles = shown.map((series) => lineLook(series.key, here).style);
      const values = shown.map((series) => series.values);
      const floor = data.series.find((series) => series.key === `allocated:${id}`)?.low;
      if (floor) {
        styles.push(lineLook('floor').style);
        values.push(floor);
      }
      chart.setLines(styles, data.x, values);
    }),
    effect(() => {
      const here = poolOf(id);
      const open = session.value;
      const known = legendOf(id);
      const [width, height] = state.size.value;
      const { colour, order, sample, tidy, site } = view.value;
      const hidden = isChosen() ? view.value.hidden : [];
      // Too small for a picture: nobody waits for it.
      if (width > 0 && (width < 100 || height < 40)) pictureDone(false);
      if (!here || !open || width < 100 || height < 40) return;
      if (!known && hidden.length > 0) return; // which classes are left the legend says
      const area = plotArea(width, height, state.last.value);
      const ratio = Math.min(globalThis.devicePixelRatio, 2);
      const [t0, t1] = timeWindow.value;
      const whole = wholeTime.value;
      const span = t1 - t0;
      const wide: Range = [Math.max(t0 - span * kOverscan, whole[0]), Math.min(t1 + span * kOverscan, whole[1])];
      source.want({
        pool: id,
        edition: colour === 'verdict' ? edition.value : String(open.generation),
        time: [Math.floor(wide[0]), Math.max(Math.ceil(wide[1]), Math.floor(wide[0]) + 1)],
        bytes: bytes(),
        width: Math.min(Math.max(Math.round(area.width * ratio * ((wide[1] - wide[0]) / span)), 1), 4096),
        height: Math.min(Math.max(Math.round(area.height * ratio), 1), 4096),
        order,
        colour,
        classes: known && classList(known, hidden),
        sample,
        detail: tidy ? 'tidy' : 'exact',
        colours: known && graphColours(known, accusedOf(here), here.input === pool.value?.input ? site : null, theme.value),
      });
    }),
  );

  undo.push(attachGestures(host, gestureTarget({ id, chart, source, host, outer, state, bytes, isChosen })));
  return () => {
    undo.forEach((step) => step());
    source.close();
    chart.destroy();
  };
}

interface Parts {
  id: number;
  chart: Chart;
  source: GraphSource;
  host: HTMLElement;
  outer: HTMLElement;
  state: PaneState;
  bytes: () => Range;
  isChosen: () => boolean;
}

function gestureTarget({ id, chart, source, host, outer, state, bytes, isChosen }: Parts): GestureTarget {
  // The sharper picture first; where it does not reach, the one behind it.
  const hitAt = (time: number, height: number): Hit | null => {
    const shown = [source.picture, source.backdrop].find((picture) => {
      const graph = picture?.graph;
      return graph && time >= graph.t0 && time <= graph.t1 && height >= graph.m0 && height <= graph.m1;
    });
    return shown ? hitGraph(shown.graph, time, height) : null;
  };
  const locate = (at: number, height: number): Promise<Located> => {
    const known = legendOf(id);
    return ask<Located>('locate', {
      pool: id, state: at, bytes: Math.max(Math.floor(height), 0), order: view.value.order,
      colour: view.value.colour, classes: known && isChosen() ? classList(known, view.value.hidden) : null,
    });
  };
  const choose = (block: number | null): void =>
    batch(() => {
      focusPool(id);
      selectBlock(block);
    });
  return {
    area: () => chart.area,
    time: () => timeWindow.value,
    bytes,
    limits: () => ({
      time: wholeTime.value, bytes: wholeBytesOf(poolOf(id)), shortestTime: kShortestTime, shortestBytes: kShortestBytes,
    }),
    // Only the chosen pane is stretched; time is everybody's.
    move: (time, height) => moveTo(time, isChosen() ? height : view.value.bytes),
    begin: () => rememberWindow(),
    hover: (time, height, x, y) => {
      pointerTime.value = time;
      const hit = time === null ? null : hitAt(time, height);
      const [from, to] = [outer.getBoundingClientRect(), host.getBoundingClientRect()];
      hovered.value = time === null ? null
        : { pool: id, x: x + to.left - from.left, y: y + to.top - from.top, time, bytes: height, hit, floor: view.value.sample === 'floor' };
    },
    click: (time, height) => {
      const hit = hitAt(time, height);
      if (!hit) { choose(null); return; }
      if (hit.block !== null) { choose(hit.block); return; }
      locate(hit.state, height).then((found) => choose(found.block), () => choose(null));
    },
    doubleClick: (time, shift) =>
      patch(shift ? { against: Math.round(time), tab: 'composition' } : { at: Math.round(time), tab: 'composition' }),
    box: (rectangle) => (state.box.value = rectangle),
    boxByDefault: () => boxMode.value,
  };
}
