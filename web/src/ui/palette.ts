// Colours of the block graph's classes. Calm hues that stay apart on both grounds; red is kept for
// what a verdict accuses, so that a leak is never one colour among many.

import type { Theme } from './theme';

export type Rgb = readonly [number, number, number];

// Hue, chroma and a step of lightness a class: neighbours in the list are far apart in hue.
const kHues = [250, 160, 75, 300, 205, 115, 340, 55, 270, 185, 95, 320];

/** OKLCH → sRGB, clipped: equal steps of it look equal, which HSL's do not. */
export function oklch(lightness: number, chroma: number, hue: number): Rgb {
  const angle = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(angle);
  const b = chroma * Math.sin(angle);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function channel(linear: number): number {
  const clipped = Math.min(Math.max(linear, 0), 1);
  const encoded = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
  return Math.round(encoded * 255);
}

/** The colour of class `index`; `other` classes (everything too small to name) are grey. */
export function classColour(index: number, theme: Theme, kind: 'named' | 'other' | 'accused' = 'named'): Rgb {
  const dark = theme === 'dark';
  if (kind === 'accused') return dark ? oklch(0.6, 0.16, 25) : oklch(0.62, 0.175, 26);
  if (kind === 'other') return dark ? oklch(0.45, 0.01, 255) : oklch(0.8, 0.01, 255);
  const hue = kHues[index % kHues.length] ?? 0;
  const round = Math.floor(index / kHues.length);
  const lift = (round % 2 === 0 ? 0 : -0.1) + (index % 2 === 0 ? 0 : 0.03);
  return dark ? oklch(0.62 + lift, 0.095, hue) : oklch(0.75 + lift, 0.095, hue);
}

/** A sequential ramp for ordered classes (size, age, step): `share` in 0..1. */
export function rampColour(share: number, theme: Theme): Rgb {
  const x = Math.min(Math.max(share, 0), 1);
  return theme === 'dark' ? oklch(0.38 + 0.42 * x, 0.1, 255 - 200 * x) : oklch(0.88 - 0.4 * x, 0.1, 215 + 75 * x);
}

export function cssColour(rgb: Rgb, alpha = 1): string {
  return alpha === 1 ? `rgb(${rgb[0]} ${rgb[1]} ${rgb[2]})` : `rgb(${rgb[0]} ${rgb[1]} ${rgb[2]} / ${alpha})`;
}
