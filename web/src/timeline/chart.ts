// The timeline's chart: uPlot draws lines, axes and grid; the block graph is blitted beneath them.
//
// Moving and zooming only moves what is there (a bitmap and some thousand points), so that a frame
// costs the same whatever the run; sharper pictures come when the server has answered.

import uPlot from 'uplot';

import { bandsOf, type Band } from './raster';
import type { Picture } from './graph_source';
import { byteTicks, timeTicks } from '../format/ticks';
import { formatBytes } from '../format/bytes';
import { formatInstant } from '../format/time';
import type { Range } from './viewport';

export const kGutter = 78;
export const kMargin = 16;
const kAxisHeight = 26;
const kNoAxis = 6; // below a chart whose time axis another one has
const kTop = 10;

export interface Area {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** The plotting area of a chart of this size, in CSS pixels: what is left beside axes and margins. */
export function plotArea(width: number, height: number, timeAxis = true): Area {
  const below = timeAxis ? kAxisHeight : kNoAxis;
  return {
    left: kGutter, top: kTop, width: Math.max(width - kGutter - kMargin, 1), height: Math.max(height - kTop - below, 1),
  };
}

export interface LineStyle {
  label: string;
  stroke: string;
  width: number;
  dash?: number[];
}

export interface ChartColours {
  text: string;
  faint: string;
  grid: string;
  ground: string;
  veil: string;
  accent: string;
}

export class Chart {
  private plot: uPlot | null = null;
  private size: [number, number] = [0, 0];
  private time: Range = [0, 1];
  private bytes: Range = [0, 1];
  private styles: LineStyle[] = [];
  private data: uPlot.AlignedData = [[]];
  private picture: Picture | null = null;
  private backdrop: Picture | null = null;
  private chosen: number | null = null;
  private bands: Band[] = [];
  private frame = 0;
  /** The lines' points changed since they were drawn. */
  private stale = false;

  constructor(
    private readonly host: HTMLElement,
    private colours: ChartColours,
    private timeAxis = true,
  ) {}

  destroy(): void {
    cancelAnimationFrame(this.frame);
    this.plot?.destroy();
    this.plot = null;
  }

  resize(width: number, height: number): void {
    if (width === this.size[0] && height === this.size[1]) return;
    this.size = [width, height];
    if (this.plot) this.plot.setSize({ width, height });
    else this.make();
  }

  /** Of charts one above the other the lowest alone has the time axis. */
  setTimeAxis(there: boolean): void {
    if (there === this.timeAxis) return;
    this.timeAxis = there;
    this.make();
  }

  recolour(colours: ChartColours): void {
    this.colours = colours;
    this.make();
  }

  setWindow(time: Range, bytes: Range): void {
    this.time = time;
    this.bytes = bytes;
    this.later();
  }

  setLines(styles: LineStyle[], x: number[], values: (number | null)[][]): void {
    const same = JSON.stringify(styles) === JSON.stringify(this.styles);
    this.data = [x, ...values] as uPlot.AlignedData;
    this.styles = styles;
    if (!same) this.make();
    else {
      this.plot?.setData(this.data, false);
      this.stale = true;
      this.later();
    }
  }

  setPicture(picture: Picture | null, backdrop: Picture | null): void {
    this.picture = picture;
    this.backdrop = backdrop;
    this.findBands();
    this.later();
  }

  choose(block: number | null): void {
    if (block === this.chosen) return;
    this.chosen = block;
    this.findBands();
    this.later();
  }

  private findBands(): void {
    this.bands = this.chosen !== null && this.picture ? bandsOf(this.picture.graph, this.chosen) : [];
  }

  /** The plotting area in CSS pixels, relative to the host. */
  get area(): Area {
    return plotArea(this.size[0], this.size[1], this.timeAxis);
  }

  private later(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const plot = this.plot;
      if (!plot) return;
      plot.batch(() => {
        plot.setScale('x', { min: this.time[0], max: this.time[1] });
        plot.setScale('y', { min: this.bytes[0], max: this.bytes[1] });
      });
      // A redraw takes up the scale that is set, so that it must come after the new one is.
      if (this.stale) plot.redraw(true, false);
      this.stale = false;
      // For tests: what the axes show, whatever was asked for.
      this.host.dataset['shown'] = `${Math.round(plot.scales['x']?.min ?? 0)}-${Math.round(plot.scales['x']?.max ?? 0)}`;
    });
  }

  private make(): void {
    this.plot?.destroy();
    this.plot = null;
    if (this.size[0] < 10 || this.size[1] < 10) return;
    const axis: uPlot.Axis = {
      stroke: this.colours.text,
      font: '11px ' + getComputedStyle(document.body).fontFamily,
      grid: { stroke: this.colours.grid, width: 1 },
      ticks: { stroke: this.colours.grid, width: 1, size: 4 },
    };
    const options: uPlot.Options = {
      width: this.size[0],
      height: this.size[1],
      padding: [kTop, kMargin, 0, 0],
      cursor: { show: false },
      legend: { show: false },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      axes: [
        {
          ...axis,
          size: this.timeAxis ? kAxisHeight : kNoAxis,
          gap: 4,
          splits: (plot, _axis, low, high) => timeTicks(low, high, plot.bbox.width / devicePixelRatio / 110).values,
          values: (plot, splits) => {
            if (!this.timeAxis) return splits.map(() => '');
            const ticks = timeTicks(this.time[0], this.time[1], plot.bbox.width / devicePixelRatio / 110);
            return splits.map((value) => formatInstant(value, ticks.step));
          },
        },
        {
          ...axis,
          size: kGutter,
          gap: 6,
          splits: (plot, _axis, low, high) => byteTicks(low, high, plot.bbox.height / devicePixelRatio / 44).values,
          values: (_plot, splits) => splits.map((value) => formatBytes(value)),
        },
      ],
      series: [
        {},
        ...this.styles.map((style): uPlot.Series => ({
          label: style.label,
          stroke: style.stroke,
          width: style.width,
          points: { show: false },
          ...(style.dash ? { dash: style.dash } : {}),
        })),
      ],
      hooks: { drawClear: [(plot) => this.blit(plot)] },
    };
    const fits = this.data.length === this.styles.length + 1;
    this.plot = new uPlot(options, fits ? this.data : ([[], ...this.styles.map(() => [])] as uPlot.AlignedData), this.host);
    this.later();
  }

  private blit(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.imageSmoothingEnabled = false;
    const draw = (picture: Picture): void => {
      const { graph } = picture;
      const left = plot.valToPos(graph.t0, 'x', true);
      const right = plot.valToPos(graph.t1, 'x', true);
      const top = plot.valToPos(graph.m1, 'y', true);
      const bottom = plot.valToPos(graph.m0, 'y', true);
      // A picture belongs to its own rectangle alone: what lies behind it there must not shine through.
      ctx.clearRect(left, top, right - left, bottom - top);
      ctx.drawImage(picture.bitmap, left, top, right - left, bottom - top);
    };
    if (this.backdrop && this.backdrop !== this.picture) draw(this.backdrop);
    if (this.picture) draw(this.picture);
    if (this.bands.length > 0) this.drawChosen(plot);
    ctx.restore();
  }

  private drawChosen(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.fillStyle = this.colours.veil;
    ctx.fillRect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.fillStyle = this.colours.accent;
    ctx.strokeStyle = this.colours.text;
    const ratio = globalThis.devicePixelRatio;
    ctx.lineWidth = ratio;
    for (const band of this.bands) {
      const left = plot.valToPos(band.left, 'x', true);
      const right = plot.valToPos(band.right, 'x', true);
      const top = plot.valToPos(band.to, 'y', true);
      const bottom = plot.valToPos(band.from, 'y', true);
      // Never thinner than two pixels: what was chosen can be seen.
      const height = Math.max(bottom - top, 2 * ratio);
      ctx.fillRect(left, bottom - height, Math.max(right - left, ratio), height);
      if (this.bands.length < 64 && height > 4 * ratio) ctx.strokeRect(left, bottom - height, Math.max(right - left, ratio), height);
    }
  }
}
