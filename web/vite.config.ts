import { defineConfig } from 'vite';

import { mockServer } from './dev/mock';

export default defineConfig(({ command }) => ({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    // No inlined data: URLs for scripts: the server's Content-Security-Policy forbids them.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: { format: 'es' },
  plugins: command === 'serve' ? [mockServer()] : [],
}));
