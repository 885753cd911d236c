// The story of the page, on the demo's run: see the leak, arrive at its blocks, read the line, compare
// two steps, take the table along.

import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { kRoot, launch, openPage, openViewer, pictureReady, recordDemo, Scratch, Viewer } from './harness';

const kSteps = 60;
const demo = readFileSync(`${kRoot}/examples/memory_leak_demo.py`, 'utf8').split('\n');
const lineOf = (text: string): number => demo.findIndex((line) => line.includes(text)) + 1;
const kAllocates = `memory_leak_demo.py:${lineOf('leak_tensor = torch.full(')}`;
const kKeeps = `memory_leak_demo.py:${lineOf('leak_store.append(')}`;

const scratch = new Scratch();
let viewer: Viewer;
let browser: Browser;
beforeAll(async () => {
  viewer = await Viewer.start(recordDemo(scratch.path, kSteps));
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  viewer.stop();
  scratch.remove();
});

async function opened(fragment = '', look = {}): Promise<{ page: Page; complaints: string[] }> {
  const result = await openPage(browser, look);
  await openViewer(result.page, viewer.address, fragment);
  return result;
}

describe('the viewer on the demo’s run', () => {
  it('says first what leaks, how fast, where it is allocated and where it is kept', async () => {
    const { page, complaints } = await opened();
    const verdict = page.locator('.verdict').first();
    expect(await verdict.locator('.cause').textContent()).toBe('Leak');
    expect(await verdict.locator('.headline').textContent()).toBe('+64 KiB a step');
    const lines = await verdict.locator('.verdict-lines').textContent();
    expect(lines).toContain(kAllocates);
    expect(lines).toContain(kKeeps);
    // With a leak the picture opens in the order in which a leak is a wedge.
    expect(await page.locator('select').filter({ hasText: 'by lifetime' }).first().inputValue()).toBe('lifetime');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('leads from the verdict to its blocks, to one of them, to its line', async () => {
    const { page, complaints } = await opened();
    await page.locator('.verdict-main').first().click();
    const rows = page.locator('.grid-row');
    await page.locator('.chip.filter').waitFor();
    await rows.first().waitFor();
    await page.waitForFunction((place) => document.querySelector('.grid-row')?.textContent.includes(place) ?? false, kAllocates);
    // Every row is the leak's; a tensor of 128 × 128 floats each.
    for (const text of await rows.allTextContents()) {
      expect(text).toContain(kAllocates);
      expect(text).toContain('64 KiB');
      expect(text).toContain('never');
    }
    await rows.nth(1).click();
    const card = page.locator('.block-card');
    await card.locator('.frame .place').first().waitFor();
    expect(await card.locator('.frame .place').first().textContent()).toBe(kAllocates);
    expect(await card.locator('.source li.here code').first().textContent()).toContain('leak_tensor = torch.full((128, 128), float(loss))');
    expect(await card.locator('.stack li.opened .place').textContent()).toBe(kAllocates);
    expect(await card.locator('.facts').textContent()).toContain('65,536 B');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('compares step 3 with the last: the leak’s line holds what was added', async () => {
    const { page, complaints } = await opened('tab=compare');
    const first = page.locator('.differences tbody tr').first();
    await first.waitFor();
    expect(await page.locator('.side input').evaluateAll((fields) => fields.map((field) => (field as HTMLInputElement).value))).toEqual(['3', String(kSteps)]);
    const text = (await first.textContent()) ?? '';
    expect(text).toContain(kAllocates);
    // A step each from the end of step 3 to the end of the last: 57 blocks of 64 KiB are 3.56 MiB.
    expect(text).toContain(`+${kSteps - 3}`);
    expect(text).toContain('+3.56 MiB');
    await first.click();
    await page.locator('.grid-row').first().waitFor();
    expect(await page.locator('.tablist [aria-selected=true]').textContent()).toBe('Blocks');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('exports the whole result, as csv and as json', async () => {
    const { page } = await opened();
    await page.locator('.verdict-main').first().click();
    await page.locator('.chip.filter').waitFor();
    await page.locator('.exports').waitFor();
    const shown = Number(((await page.locator('.grid-bar .count').textContent()) ?? '').replace(/\D/g, ''));
    const take = async (format: string): Promise<string> => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.locator('.exports a', { hasText: format }).click()]);
      return readFileSync(await download.path(), 'utf8');
    };
    const csv = (await take('CSV')).trim().split(/\r?\n/);
    expect(csv[0]).toContain('address');
    expect(csv.length - 1).toBe(shown);
    const json = JSON.parse(await take('JSON')) as { size: number; site: string }[];
    expect(json.length).toBe(shown);
    expect(new Set(json.map((row) => `${row.size} ${row.site}`))).toEqual(new Set([`65536 ${kAllocates}`]));
    await page.context().close();
  });

  it('shows the same to whoever opens its link', async () => {
    const { page } = await opened();
    await page.locator('.verdict-main').first().click();
    await page.locator('.grid-row').nth(2).click();
    await page.locator('.block-card .frame').first().waitFor();
    await page.waitForFunction(() => location.hash.includes('block='));
    const title = await page.locator('.block-card header b').textContent();
    const link = page.url();
    await page.context().close();

    const other = await openPage(browser, { language: 'zh', theme: 'dark' });
    await openViewer(other.page, link);
    await other.page.locator('.block-card .frame').first().waitFor();
    const digits = (text: string | null): string => (text ?? '').replace(/\D/g, '');
    expect(digits(await other.page.locator('.block-card header b').textContent())).toBe(digits(title));
    expect(await other.page.locator('.tablist [aria-selected=true]').textContent()).toBe('内存块');
    expect(await other.page.locator('.chip.filter').count()).toBe(1);
    await other.page.context().close();
  });
});

describe('the timeline', () => {
  const windowOf = async (page: Page): Promise<[number, number] | null> => {
    await page.waitForTimeout(400); // the address follows after a quarter of a second
    const match = /[#&]t=(\d+)-(\d+)/.exec(page.url());
    return match ? [Number(match[1]), Number(match[2])] : null;
  };

  it('zooms at the cursor with the wheel, and back', async () => {
    const { page } = await opened();
    const plot = await page.locator('.plot').boundingBox();
    if (!plot) throw new Error('no plot');
    const left = plot.x + 78;
    const width = plot.width - 78 - 16;
    await page.mouse.move(left + width * 0.75, plot.y + 60);
    await page.mouse.wheel(0, -240);
    await page.mouse.wheel(0, -240);
    const zoomed = await windowOf(page);
    if (!zoomed) throw new Error('not zoomed');
    const whole = await page.evaluate(async () => {
      const answer = (await (await fetch('api/session')).json()) as { inputs: { begin: number; end: number }[] };
      return answer.inputs[0];
    });
    if (!whole) throw new Error('no input');
    const at = whole.begin + 0.75 * (whole.end - whole.begin);
    expect((at - zoomed[0]) / (zoomed[1] - zoomed[0])).toBeCloseTo(0.75, 1);
    // The axes show what the address says.
    expect(await page.locator('.plot').getAttribute('data-shown')).toBe(`${zoomed[0]}-${zoomed[1]}`);
    expect(zoomed[1] - zoomed[0]).toBeLessThan((whole.end - whole.begin) * 0.5);
    await pictureReady(page);
    await page.keyboard.press('Backspace');
    // Turns that lie half a second apart, as on a busy machine, are two moves.
    if (await windowOf(page)) await page.keyboard.press('Backspace');
    expect(await windowOf(page)).toBeNull();
    await page.context().close();
  });

  it('goes to a step, a time and the peak, and says what it does not understand', async () => {
    const { page } = await opened();
    const goto = page.locator('#goto');
    await goto.fill('step 30');
    await goto.press('Enter');
    const step = await windowOf(page);
    if (!step) throw new Error('not moved');
    const ends = await page.evaluate(async () => ((await (await fetch('api/steps?input=0')).json()) as { ends: number[] }).ends);
    expect(step[0]).toBeLessThanOrEqual(ends[28] ?? 0);
    expect(step[1]).toBeGreaterThanOrEqual(ends[29] ?? 0);
    await goto.fill('nonsense and more');
    await goto.press('Enter');
    await page.locator('#goto[aria-invalid=true]').waitFor();
    await goto.press('Escape');
    await page.keyboard.press('0');
    expect(await windowOf(page)).toBeNull();
    await page.keyboard.press('p');
    expect(await windowOf(page)).not.toBeNull();
    await page.context().close();
  });

  it('opens the block that was clicked in the graph', async () => {
    const { page } = await opened('order=lifetime');
    const plot = await page.locator('.plot').boundingBox();
    if (!plot) throw new Error('no plot');
    // Low and late: never freed, hence in the leak's wedge or under it.
    await page.mouse.click(plot.x + plot.width * 0.9, plot.y + plot.height - 26 - 30);
    await page.locator('.block-card .facts').waitFor();
    expect(await page.locator('.block-card .facts').textContent()).toContain('alive at the end');
    await page.context().close();
  });

  it('hides and shows a class by its legend', async () => {
    const { page } = await opened();
    const chip = page.locator('.legend .chip').first();
    await chip.click();
    await page.waitForFunction(() => location.hash.includes('hide='));
    expect(await chip.getAttribute('aria-pressed')).toBe(null); // "show all" has come first
    await page.locator('.legend .chip.all').click();
    await page.waitForFunction(() => !location.hash.includes('hide='));
    await page.context().close();
  });
});

describe('every tab', () => {
  for (const tab of ['sites', 'composition', 'blocks', 'events', 'compare', 'pool']) {
    it(`${tab} shows something, in both languages, and complains of nothing`, async () => {
      for (const language of ['en', 'zh'] as const) {
        const { page, complaints } = await opened(`tab=${tab}`, { language });
        await page.locator('.grid-row, .tile, .differences tr, .pane .empty').first().waitFor();
        expect(complaints).toEqual([]);
        // Nothing of the page is wider than its window.
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
        await page.context().close();
      }
    });
  }
});
