// The timeline: overview, toolbar, a pane for each pool that is shown, lanes, legend and what hovers.
// All share one time axis; each pane has a scale of its own, from zero.

import { useRef } from 'preact/hooks';

import { t } from '../i18n';
import { formatInstant } from '../format/time';
import { pointerTime, shownPools, timeWindow, view } from '../state/store';
import { kGutter, kMargin } from './chart';
import { plotWidth } from './data';
import { HoverCard } from './hover';
import { LaneStrip } from './lane_strip';
import { LegendBar } from './legend';
import { Overview } from './overview';
import { Pane } from './pane';
import { Toolbar } from './toolbar';

export function Timeline({ height }: { height: number }) {
  const frame = useRef<HTMLDivElement>(null);
  const shown = shownPools.value;
  const width = plotWidth.value + kGutter + kMargin;
  return (
    <section class="timeline" aria-label={t('timeline.title')} style={{ height: `${height}px` }}>
      <Toolbar />
      <div class="timeline-frame" ref={frame}>
        <Overview width={width} />
        <div class="stacked">
          {shown.map((pool, index) => (
            <Pane key={pool.id} id={pool.id} frame={frame} alone={shown.length === 1} last={index === shown.length - 1} />
          ))}
        </div>
        <LaneStrip frame={frame} />
        <PointerLine width={width} />
        <HoverCard />
      </div>
      <LegendBar />
    </section>
  );
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
