// What the page costs on a large input: time to the first picture, frames while it is moved, heap.
//
//   MSMEMSCOPE_INPUT=/path/to/a/trace npm run frames        (in web/)
//
// Prints one line a measure; asserts nothing.

import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { it } from 'vitest';

import { launch, openPage, pictureReady, Scratch, Viewer } from './harness';

const input = process.env['MSMEMSCOPE_INPUT'];

interface Frames {
  count: number;
  p50: number;
  p95: number;
  worst: number;
}

/** Frame times while `move` is called once a frame with 0 … 1. */
async function frames(page: Page, kind: 'pan' | 'zoom'): Promise<Frames> {
  const times = await page.evaluate(async (what) => {
    const plot = document.querySelector<HTMLElement>('.plot');
    if (!plot) throw new Error('no plot');
    const box = plot.getBoundingClientRect();
    const clientX = box.left + box.width * 0.6;
    const clientY = box.top + box.height * 0.5;
    const wheel = (deltaX: number, deltaY: number): void => {
      plot.dispatchEvent(new WheelEvent('wheel', { deltaX, deltaY, clientX, clientY, bubbles: true, cancelable: true }));
    };
    const gaps: number[] = [];
    await new Promise<void>((resolve) => {
      let last = performance.now();
      let n = 0;
      const frame = (now: number): void => {
        gaps.push(now - last);
        last = now;
        if (what === 'pan') wheel(n % 120 < 60 ? 12 : -12, 0);
        else wheel(0, n % 120 < 60 ? -30 : 30);
        n += 1;
        if (n < 240) requestAnimationFrame(frame);
        else resolve();
      };
      requestAnimationFrame(frame);
    });
    return gaps.slice(2);
  }, kind);
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.min(Math.floor(times.length * share), times.length - 1)] ?? 0;
  return { count: times.length, p50: at(0.5), p95: at(0.95), worst: at(1) };
}

const say = (name: string, value: string): void => void process.stdout.write(`${name.padEnd(28)} ${value}\n`);
const framesText = (f: Frames): string => `p50 ${f.p50.toFixed(1)} ms   p95 ${f.p95.toFixed(1)} ms   worst ${f.worst.toFixed(1)} ms   of ${f.count}`;

it.skipIf(!input)('frames', async () => {
  const scratch = new Scratch();
  process.env['XDG_CACHE_HOME'] = join(scratch.path, 'cache');
  const browser = await launch();
  try {
    for (const state of ['cold', 'warm'] as const) {
      const begin = performance.now();
      const viewer = await Viewer.startCached(input ?? '');
      const { page } = await openPage(browser, { width: 1920, height: 1080 });
      await page.goto(viewer.address);
      await pictureReady(page);
      say(`first picture, ${state}`, `${((performance.now() - begin) / 1000).toFixed(2)} s`);
      if (state === 'warm') {
        await page.waitForTimeout(2000);
        const zoomIn = page.locator('.toolbar .buttons button').nth(3);
        await zoomIn.click();
        await zoomIn.click();
        await page.waitForTimeout(1500);
        say('frames while panning', framesText(await frames(page, 'pan')));
        say('frames while zooming', framesText(await frames(page, 'zoom')));
        const heap = await page.evaluate(() => (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize);
        say('JS heap', `${(heap / 2 ** 20).toFixed(0)} MiB`);
        const slow = await page.evaluate(() =>
          performance.getEntriesByType('resource')
            .filter((entry) => entry.name.includes('/api/'))
            .map((entry) => ({ name: entry.name.replace(/.*\/api\//, '').slice(0, 110), time: entry.duration }))
            .sort((a, b) => b.time - a.time).slice(0, 5));
        for (const entry of slow) say('slowest queries', `${entry.time.toFixed(0)} ms  ${entry.name}`);
      }
      await page.context().close();
      viewer.stop();
    }
  } finally {
    await browser.close();
    scratch.remove();
  }
}, 300_000);
