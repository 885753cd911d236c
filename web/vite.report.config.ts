// dist/report.html: the page as one file, with a place for the answers that a report carries.

import { createHash } from 'node:crypto';
import { defineConfig, type Plugin } from 'vite';

// A script's text may hold anything but its own end tag.
const inScript = (text: string): string => text.replace(/<\/(script)/gi, '<\\/$1').replace(/<!--/g, '<\\!--');

// Nothing else runs or styles, whatever the answers hold (CSP 3, section 2.3.1).
const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

function oneFile(): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_options, bundle) {
      let script = '';
      let style = '';
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === 'chunk' && file.isEntry) script = file.code;
        if (file.type === 'asset' && name.endsWith('.css')) style += String(file.source);
        Reflect.deleteProperty(bundle, name);
      }
      const code = inScript(script);
      const policy = `default-src 'none'; script-src ${hashOf(code)}; style-src ${hashOf(style)}; img-src data: blob:; base-uri 'none'; form-action 'none'`;
      const source = [
        '<!doctype html>',
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
        `<title>MemScope</title><style>${style}</style></head><body><div id="app"></div>`,
        '<script type="application/json" id="msmemscope-report"></script>',
        `<script type="module">${code}</script></body></html>`,
      ].join('\n');
      this.emitFile({ type: 'asset', fileName: 'report.html', source });
    },
  };
}

export default defineConfig({
  base: './',
  publicDir: false,
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    outDir: 'dist',
    emptyOutDir: false,
    target: 'es2022',
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: { input: 'src/main.tsx', output: { inlineDynamicImports: true } },
  },
  plugins: [oneFile()],
});
