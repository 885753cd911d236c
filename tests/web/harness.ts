// A run to look at, the viewer's server on it, and a browser: Debian's Chromium, headless.
//
// The command is MSMEMSCOPE_BUILD_DIR's msmemscope, else .venv's. What is made lies in a temporary
// directory and goes with it.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

export const kRoot = fileURLToPath(new URL('../..', import.meta.url));
export const kPython = join(kRoot, '.venv/bin/python');
const kBuild = process.env['MSMEMSCOPE_BUILD_DIR'];
const kCommand = kBuild ? join(kBuild, 'msmemscope') : join(kRoot, '.venv/bin/msmemscope');

export class Scratch {
  readonly path = mkdtempSync(join(tmpdir(), 'msmemscope-web-'));
  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** What a Python program needs to find the package under test. */
export function pythonEnvironment(): NodeJS.ProcessEnv {
  return kBuild ? { ...process.env, PYTHONPATH: join(kRoot, 'python') } : process.env;
}

/** Runs a Python program with the package under test. */
export function python(...words: string[]): void {
  execFileSync(kPython, words, { cwd: tmpdir(), env: pythonEnvironment(), stdio: ['ignore', 'ignore', 'pipe'], timeout: 90_000 });
}

/** What records host memory with native stacks, and reports nothing. */
export const kHostOptions: readonly string[] = ['--device=host', '--call-stack=c:50,python:50', '--report-to', 'none'];

/** Runs a Python program under the command. */
export function record(options: readonly string[], ...words: string[]): void {
  execFileSync(kCommand, [...options, '--', kPython, ...words], { cwd: tmpdir(), env: pythonEnvironment(), stdio: ['ignore', 'ignore', 'pipe'], timeout: 90_000 });
}

/** The demo's run, of `steps` steps. */
export function recordDemo(directory: string, steps: number): string {
  const output = join(directory, 'demo');
  python(join(kRoot, 'examples/memory_leak_demo.py'), `--steps=${steps}`, `--output=${output}`);
  return output;
}

/** A page to send away. */
export function makeReport(file: string, input: string, ...words: string[]): string {
  execFileSync(kCommand, ['report', input, '-o', file, '--no-cache', '--quiet', ...words], {
    env: { ...process.env, MSMEMSCOPE_WEB_DIR: join(kRoot, 'web/dist') },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 60_000,
  });
  return file;
}

/** Names that are markup, or 100 kB long. */
export const kMarkup = '<img src=x onerror=document.title=1><script>document.title=2</script>';
export const kHostileProgram = `
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

const kHead = 'ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,Call Stack(Python),Call Stack(C)';
/**
 * A dump of two devices: npu:0's driver hands 64 MiB to its pool, in which 36 blocks of 1 MiB pile up; npu:1's pool
 * holds one block of 8 MiB that comes and goes. A block a 100 ms.
 */
export function twoDevices(): string {
  const rows = [kHead];
  const row = (event: string, type: string, ms: number, device: number, address: number, size: number, name = 'N/A'): void => {
    const attributes = `"{addr:0x${address.toString(16)},size:${size}}"`;
    rows.push(`${rows.length},${event},${type},${name},1764753083${String(ms * 1_000_000).padStart(9, '0')},9,9,${device},0x${address.toString(16)},${attributes},,`);
  };
  row('MALLOC', 'HAL', 1, 0, 0x10_0000_0000, 64 << 20);
  // The first block is written after 10 ms and read after 40.
  row('MALLOC', 'PTA', 2, 0, 0x18_0000_0000, 4096);
  row('ACCESS', 'WRITE', 12, 0, 0x18_0000_0000, 4096, 'aten.empty');
  row('ACCESS', 'READ', 42, 0, 0x18_0000_0000, 4096, 'aten.mm');
  row('FREE', 'PTA', 62, 0, 0x18_0000_0000, 4096);
  for (let i = 0; i < 9; i += 1) {
    for (let k = 0; k < 4; k += 1) row('MALLOC', 'PTA', 100 * i + 10 * k + 5, 0, 0x10_0000_0000 + ((i * 4 + k) << 20), 1 << 20);
    row('MALLOC', 'PTA', 100 * i + 50, 1, 0x20_0000_0000, 8 << 20);
    row('FREE', 'PTA', 100 * i + 90, 1, 0x20_0000_0000, 8 << 20);
  }
  return `${rows.join('\n')}\n`;
}

export class Viewer {
  private constructor(private readonly child: ChildProcess, readonly address: string) {}

  static start(...inputs: string[]): Promise<Viewer> {
    return Viewer.run(['--no-cache', ...inputs]);
  }

  /** With an index in the cache directory, as users have it. */
  static startCached(...inputs: string[]): Promise<Viewer> {
    return Viewer.run(inputs);
  }

  private static async run(words: readonly string[]): Promise<Viewer> {
    const web = join(kRoot, 'web/dist');
    if (!existsSync(join(web, 'index.html'))) throw new Error('web/dist is not built: npm run build in web/');
    const child = spawn(kCommand, ['view', '--no-browser', ...words], {
      env: { ...process.env, MSMEMSCOPE_WEB_DIR: web },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const address = await new Promise<string>((resolve, reject) => {
      let said = '';
      const listen = (chunk: Buffer): void => {
        said += chunk.toString();
        const found = /http:\/\/\S+/.exec(said);
        if (found) resolve(found[0]);
      };
      child.stdout.on('data', listen);
      child.stderr.on('data', listen);
      child.on('exit', (status) => reject(new Error(`${dirname(kCommand)}: view ended with ${status ?? 'a signal'}: ${said}`)));
    });
    return new Viewer(child, address);
  }

  stop(): void {
    this.child.removeAllListeners('exit');
    this.child.kill('SIGTERM');
  }
}

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    // As root, as in CI, Chromium has no sandbox of its own.
    args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'],
  });
}

export interface Look {
  width?: number;
  height?: number;
  theme?: 'light' | 'dark';
  language?: 'en' | 'zh';
  scale?: number;
  /** The address of a page that has no server. */
  own?: string;
}

/** A page of its own; what it complains of, and what it asks of anybody else, is collected. */
export async function openPage(browser: Browser, look: Look = {}): Promise<{ page: Page; complaints: string[] }> {
  const options: BrowserContextOptions = {
    viewport: { width: look.width ?? 1440, height: look.height ?? 900 },
    colorScheme: look.theme ?? 'light',
    locale: look.language === 'zh' ? 'zh-CN' : 'en-US',
    deviceScaleFactor: look.scale ?? 1,
    acceptDownloads: true,
  };
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    const text = message.text();
    // The first is about these tests' own look at pixels; the second is told better below.
    if (/willReadFrequently|Failed to load resource/.test(text)) return;
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(text);
  });
  page.on('response', (response) => {
    // A source that the trace does not hold is no fault of the page.
    if (response.status() >= 400 && !response.url().includes('/api/source')) complaints.push(`${response.status()} ${response.url()}`);
  });
  page.on('request', (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (look.own !== undefined && request.url().split('#')[0] === look.own) return;
    if (protocol !== 'data:' && protocol !== 'blob:' && (hostname !== '127.0.0.1' || look.own !== undefined)) complaints.push(`asked for ${request.url()}`);
  });
  return { page, complaints };
}

/** The page with its verdicts and its first picture of the block graph. */
export async function openViewer(page: Page, address: string, fragment = ''): Promise<void> {
  await page.goto(`${address}${fragment === '' ? '' : `#${fragment}`}`);
  await page.locator('.verdict .cause').first().waitFor();
  await pictureReady(page);
}

/** Until the canvas of the chart shows blocks: pixels that are neither ground nor line. */
export async function pictureReady(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const canvas = document.querySelector<HTMLCanvasElement>('.plot canvas');
    const context = canvas?.getContext('2d');
    if (!canvas || !context || canvas.width === 0) return false;
    const x = Math.floor(canvas.width * 0.9);
    const column = context.getImageData(x, 0, 1, canvas.height).data;
    let painted = 0;
    for (let i = 0; i < column.length; i += 4) {
      const [r = 0, g = 0, b = 0, a = 0] = column.slice(i, i + 4);
      if (a > 250 && Math.max(r, g, b) - Math.min(r, g, b) > 30) painted += 1;
    }
    return painted > 10;
  });
}
