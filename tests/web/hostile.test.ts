// A program whose names are markup, or are 100 kB long, does the page no harm.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { launch, openPage, openViewer, python, Scratch, Viewer } from './harness';

const kMarkup = '<img src=x onerror=document.title=1><script>document.title=2</script>';
const kProgram = `
import sys, torch, msmemscope
kept = []
def grow(code, names):
    exec(code, names)
body = "def f():\\n    kept.append(torch.ones(64, 64))  # ${kMarkup}\\n"
names = {"torch": torch, "kept": kept}
exec(compile(body, ${JSON.stringify(`${kMarkup}.py`)}, "exec"), names)
long = "x" * 100_000
exec(compile("def %s():\\n    kept.append(torch.ones(32, 32))\\n" % long, "/tmp/" + long[:200] + ".py", "exec"), names)
msmemscope.config(output_path=sys.argv[1])
msmemscope.start()
for _ in range(40):
    names["f"]()
    names[long]()
    msmemscope.step()
msmemscope.stop()
`;

const scratch = new Scratch();
let viewer: Viewer;
let browser: Browser;
beforeAll(async () => {
  const program = join(scratch.path, 'program.py');
  writeFileSync(program, kProgram);
  python(program, join(scratch.path, 'run'));
  viewer = await Viewer.start(join(scratch.path, 'run'));
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  viewer.stop();
  scratch.remove();
});

it('markup in names stays text in every tab, and long names are cut', async () => {
  for (const tab of ['sites', 'composition', 'blocks', 'events', 'compare']) {
    const { page, complaints } = await openPage(browser);
    await openViewer(page, viewer.address, `tab=${tab}`);
    await page.locator('.grid-row, .tile, .differences tr').first().waitFor();
    if (tab === 'blocks') {
      await page.locator('.grid-row').first().click();
      await page.locator('.block-card .facts').waitFor();
    }
    expect(await page.locator('#app img, #app script').count()).toBe(0);
    expect(await page.title()).toBe('MemScope');
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    const longest = await page.evaluate(() => Math.max(...[...document.querySelectorAll('#app *')].map((e) => (e.children.length === 0 ? (e.textContent.length) : 0))));
    expect(longest).toBeLessThan(1000);
    expect(complaints).toEqual([]);
    await page.context().close();
  }
});
