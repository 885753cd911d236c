// From a legend to the colours of the block graph: by name, so that a name keeps its colour from run
// to run as far as neighbours allow; red only for what a verdict accuses.

import type { LegendClass } from '../api/types';
import { classColour, type Rgb, rampColour } from '../ui/palette';
import type { Theme } from '../ui/theme';

/** What the server calls blocks without an owner. */
export const kNoOwner = '(no owner)';
/** A block without a stack, or with one in which nothing is known. */
export const kNoLine = '(no code line)';
const kSlots = 24;
const kOrdered = new Set(['size', 'age', 'step']);

/** A place on the palette for each class: the one its name's hash wants, else the next free one. */
export function paletteSlots(classes: readonly { hue: number }[]): number[] {
  const taken = new Set<number>();
  return classes.map((entry) => {
    const wanted = Math.floor(((((entry.hue % 360) + 360) % 360) / 360) * kSlots) % kSlots;
    for (let i = 0; i < kSlots; i += 1) {
      const slot = (wanted + i * 7) % kSlots; // 7 and 24 share no factor: every slot is tried
      if (!taken.has(slot)) {
        taken.add(slot);
        return slot;
      }
    }
    return wanted;
  });
}

export function legendColours(
  colour: string, classes: readonly LegendClass[], accused: ReadonlySet<number>, theme: Theme,
): Rgb[] {
  const named = classes.filter((entry) => entry.id !== 0);
  const slots = new Map(paletteSlots(named).map((slot, index) => [named[index]?.id ?? 0, slot]));
  return classes.map((entry) => {
    if (kOrdered.has(colour)) return rampColour(named.length < 2 ? 0.5 : (entry.id - 1) / (named.length - 1), theme);
    if (entry.id === 0 || (colour === 'owner' && entry.name === kNoOwner)) return classColour(0, theme, 'other');
    if (colour === 'verdict') return classColour(0, theme, 'accused');
    if (isAccused(entry, accused)) return classColour(0, theme, 'accused');
    return classColour(slots.get(entry.id) ?? 0, theme);
  });
}

export function isAccused(entry: LegendClass, accused: ReadonlySet<number>): boolean {
  const site = entry.key['site'];
  return typeof site === 'number' && accused.has(site);
}

/** A colour towards the ground, for what is not chosen. */
export function fade(rgb: Rgb, theme: Theme, share: number): Rgb {
  const ground = theme === 'dark' ? 26 : 255;
  return [0, 1, 2].map((i) => Math.round((rgb[i] ?? 0) * (1 - share) + ground * share)) as unknown as Rgb;
}

/** For pixels: 0xAABBGGRR, by class id. */
export function pixelColours(classes: readonly LegendClass[], colours: readonly Rgb[]): Uint32Array {
  const size = classes.reduce((most, entry) => Math.max(most, entry.id + 1), 32);
  const pixels = new Uint32Array(size).fill(0xff999999);
  classes.forEach((entry, index) => {
    const rgb = colours[index];
    if (rgb) pixels[entry.id] = ((255 << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0]) >>> 0;
  });
  return pixels;
}
